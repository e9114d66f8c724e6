"""PostgreSQL goes away in the middle of a batch: workers wait for it, and lose neither rows nor attempts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rowferry_lab.servers.postgres import EmbeddedPostgres, StopMode
from support.entries.migration import Migration
from support.postgres.ordinary import as_owner, ordinary_postgres
from support.postgres.servers import make_schema
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog, writes_of


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that the test may restart."""
    with ordinary_postgres() as server:
        make_schema(as_owner(server.dsn()))
        yield server


@pytest.fixture
def database(own_postgres: EmbeddedPostgres) -> str:
    return as_owner(own_postgres.dsn())


@pytest.mark.must("a database that restarts", "immediate")
@pytest.mark.by_day("immediate")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_costs_no_attempt(
    mode: StopMode, own_postgres: EmbeddedPostgres, migration: Migration, log: RequestLog, tmp_path: Path
) -> None:
    migration.given(60, 20)
    migration.close()
    with migration.workers(1, "--until-empty", "--max-batches=1") as (worker,):
        with log.holding(writes_of(range(31, 41)), where="answer") as held:
            eventually(lambda: held)
            own_postgres.restart(mode)
        assert worker.wait() == 0
    assert sum(migration.counts().values()) == 60
    assert migration.statuses() == {"DONE"}
    assert sorted(map(str, migration.verdicts())) == ["DONE", "DONE", "DONE", "LOST"]
    assert {attempt["number"] for attempt in migration.attempts()} == {1}
    migration.audit()
