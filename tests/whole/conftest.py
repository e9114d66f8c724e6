"""Fixtures of whole runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from corpus.project import Project
from corpus.world import Corpus
from support.postgres.roles import new_roles
from support.s3.buckets import QUICK_SERVER, fresh_buckets


@pytest.fixture
def make_corpus(
    request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Corpus]]:
    """Make the database, the objects and the plan of a project, filled; the two sides are different servers."""
    with ExitStack() as until:
        roles = until.enter_context(new_roles(database))
        servers = [request.getfixturevalue(name) for name in (QUICK_SERVER, "moto")]
        legacy, production = (until.enter_context(fresh_buckets(server)) for server in servers)

        def make(project: Project, uploads: int, plan: Mapping[str, Mapping[str, Any]] | None = None) -> Corpus:
            made = until.enter_context(closing(Corpus(database, legacy, production, tmp_path, project=project)))
            for variable, value in made.environment.items():
                monkeypatch.setenv(variable, value)
            for name, table in (plan or {}).items():
                made.plan[name].update(table)
            made.application.fill(uploads)
            made.write_plan()
            made.grant_minimum(roles)
            return made

        yield make
