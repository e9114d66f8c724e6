"""Fixtures of the tests of SQL: an operator's session at lines of waiting batches, and a worker's."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from rowferry.db.connection import Connection, connect
from support.queue.lines import Lines


@pytest.fixture
def lines(request: pytest.FixtureRequest, any_database: str) -> Iterator[Lines]:
    """Lines of the migrations that the file of the test names in MIGRATIONS; DATABASE_URL leads to them."""
    with closing(Lines(any_database)) as lines:
        for name in getattr(request.module, "MIGRATIONS", ()):
            lines.register(name)
        yield lines


@pytest.fixture
def worker(any_database: str) -> Iterator[Connection]:
    """A worker's session at the test's database."""
    with closing(connect("worker")) as connection:
        yield connection
