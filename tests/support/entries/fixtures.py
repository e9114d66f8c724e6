"""Fixtures that every test may ask for: tables of entries, and migrations between servers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path

import pytest

from rowferry.s3 import retry
from rowferry_worker.batch import verdict
from support.entries.discovering import Discovering
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.queue.batch_slot import Slot, open_slot
from support.s3.buckets import QUICK_SERVER, Buckets, fresh_buckets
from support.s3.request_log import RequestLog

TRANSFERS = {
    "moto": ("moto", "moto"),
    "versitygw": ("versitygw", "versitygw"),
    "moto-to-versitygw": ("moto", "versitygw"),
    "versitygw-to-moto": ("versitygw", "moto"),
}
"""The servers of both sides: where they are one, it copies by itself; where they are two, objects are streamed."""
BY_DAY = {QUICK_SERVER, "moto-to-versitygw"}
"""Those that `make test-all` takes; the others are for the night."""


@pytest.fixture
def table(database: str) -> Iterator[EntryTable]:
    """An empty table of entries, to which DATABASE_URL leads; no S3."""
    with closing(EntryTable(database)) as table:
        yield table


@pytest.fixture
def ten(table: EntryTable) -> EntryTable:
    """A table with one waiting batch of ten entries, which may be tried three times."""
    table.plan["migration"]["max_attempts"] = 3
    table.add_legacy(range(10)).enqueue(10)
    return table


@pytest.fixture
def slot(noted: EntryTable) -> Iterator[Slot]:
    """A slot of a worker in this process, for one waiting batch of the queue `note`."""
    with open_slot(noted) as slot:
        yield slot


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests be tried again at once."""
    monkeypatch.setattr(retry, "REQUEST_BASE", timedelta(milliseconds=1))


@pytest.fixture
def make_migration(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Migration]]:
    """Make an empty migration between given buckets, and give this process the environment to work on it.

    A batch that is to be tried again rests until the test says `make_due`: by the dice it may be due at once.
    """
    monkeypatch.setattr(verdict, "retry_delay", lambda _attempt: timedelta(hours=1))
    with ExitStack() as until:

        def make(legacy: Buckets, production: Buckets, **more: str) -> Migration:
            migration = until.enter_context(closing(Migration(database, legacy, production, tmp_path, **more)))
            for name, value in migration.environment.items():
                monkeypatch.setenv(name, value)
            return migration

        yield make


@pytest.fixture(params=[pytest.param(name, marks=() if name in BY_DAY else pytest.mark.soak) for name in TRANSFERS])
def any_migration(request: pytest.FixtureRequest, make_migration: Callable[..., Migration]) -> Iterator[Migration]:
    """An empty migration over every pair of servers, one after the other; by day over two of them."""
    with ExitStack() as until:
        servers = [request.getfixturevalue(name) for name in dict.fromkeys(TRANSFERS[request.param])]
        buckets = [until.enter_context(fresh_buckets(server)) for server in servers]
        yield make_migration(buckets[0], buckets[-1])


@pytest.fixture
def migration(
    request: pytest.FixtureRequest, quick_buckets: Buckets, make_migration: Callable[..., Migration]
) -> Migration:
    """An empty migration within versitygw, which is quick, or within moto where there is no versitygw.

    The workers of a test that asks for `log` reach S3 through that proxy.
    """
    migration = make_migration(quick_buckets, quick_buckets)
    if "log" in request.fixturenames and isinstance(log := request.getfixturevalue("log"), RequestLog):
        migration.reach_through(log.endpoint_url)
    return migration


@pytest.fixture
def migrated(migration: Migration) -> Migration:
    """A migration of five entries that is done, and its plan file."""
    migration.fill(5).migrate()
    return migration.write_plan()


@pytest.fixture
def moto_migration(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration within moto, which takes every key as it is."""
    return make_migration(moto_buckets, moto_buckets)


@pytest.fixture
def versitygw_migration(versitygw_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration within versitygw, which is fast and checks credentials."""
    return make_migration(versitygw_buckets, versitygw_buckets)


@pytest.fixture
def logged_migration(quick_buckets: Buckets, log: RequestLog, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration whose workers reach S3 through the logging proxy."""
    migration = make_migration(quick_buckets, quick_buckets)
    migration.reach_through(log.endpoint_url)
    return migration


@pytest.fixture
def found(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Discovering:
    """An empty database and an empty legacy bucket to discover: of the lab's fake, or of moto where `on_moto` marks."""
    buckets = request.getfixturevalue(f"{getattr(request, 'param', 'fake')}_buckets")
    return Discovering(database, buckets, tmp_path)
