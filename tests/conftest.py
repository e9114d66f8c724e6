"""Fixtures that every test may ask for: databases, S3 servers, buckets."""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import none

from rowferry_lab.servers.s3_servers import MotoServer, S3Server, VersityServer
from rowferry_worker.batch import verdict
from support.entries.entry_table import TO, EntryTable
from support.entries.migration import Migration
from support.postgres.ordinary import reason_to_be_superuser
from support.postgres.servers import (
    INSTALLATIONS,
    POSTGRES,
    QUICK_SERVER,
    Buckets,
    DatabaseServers,
    find_distribution_postgres,
    find_versitygw,
    fresh_buckets,
    running_for_all,
)
from support.processes.cli import Run, run_rowferry_in
from support.processes.time_limit import pytest_timeout_set_timer  # noqa: F401 - a hook of pytest-timeout
from support.queue.plug_in import NOTES, PlugIn, write_plan
from support.running.by_day import is_nightly
from support.s3.request_log import RequestLog, logged

pytest_plugins = ["support.running.plugin"]

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("wandering", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")
"""The same examples in every run, however slow the machine is; `--hypothesis-profile=wandering` looks at others."""

FOREIGN_SETTINGS = ("DATABASE_URL", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE", "PGOPTIONS")
FOREIGN_AWS_SETTINGS = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION")

OF_TESTS = ("ROWFERRY_TEST_", "ROWFERRY_LARGE_")
"""How variables begin that are meant for the tests; all others of rowferry set options."""


@pytest.fixture(autouse=True, scope="session")
def _hear_interrupts() -> Iterator[None]:
    """Ctrl-C is heard here and in all that is started, also where the shell that began it all ignores it (nohup)."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the developer set for other work reaches a test, nor does a test reach the developer's cloud."""
    options = [name for name in os.environ if name.startswith("ROWFERRY_") and not name.startswith(OF_TESTS)]
    for name in (*FOREIGN_SETTINGS, *FOREIGN_AWS_SETTINGS, *options):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(autouse=True)
def _ordinary(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let only a test that is marked so be a superuser."""
    marker = request.node.get_closest_marker("superuser")
    with reason_to_be_superuser(marker and marker.args[0]):
        yield


@pytest.fixture(scope="session")
def database_servers() -> Iterator[DatabaseServers]:
    with ExitStack() as until:
        yield DatabaseServers(until)


@pytest.fixture
def database(database_servers: DatabaseServers) -> Iterator[str]:
    """The DSN of a database of this test's own, initialised, in the first PostgreSQL that is tested with."""
    with database_servers.fresh_database(POSTGRES) as dsn:
        yield dsn


@pytest.fixture(params=sorted(INSTALLATIONS), ids="postgresql-{}".format)
def any_database(request: pytest.FixtureRequest, database_servers: DatabaseServers) -> Iterator[str]:
    """The same in each PostgreSQL that is tested with, one after the other."""
    with database_servers.fresh_database(INSTALLATIONS[request.param]) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def distribution_postgres() -> Path:
    """The programs of a PostgreSQL as distributions build it, with TLS, JIT and ICU, which the embedded one has not."""
    found = find_distribution_postgres()
    if found is None:
        pytest.skip("no PostgreSQL with TLS is here: the embedded one has none, Debian's package `postgresql` has")
    return found[1]


@pytest.fixture
def distribution_database(distribution_postgres: Path, database_servers: DatabaseServers) -> Iterator[str]:
    """The DSN of a database of this test's own in such a PostgreSQL."""
    with database_servers.fresh_database(distribution_postgres) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    with running_for_all(MotoServer()) as server:
        yield server


@pytest.fixture(scope="session")
def versitygw() -> Iterator[S3Server]:
    program = find_versitygw()
    if program is None:
        pytest.skip("versitygw is not here: `make test` builds it where `go` is installed")
    with running_for_all(VersityServer(program)) as server:
        yield server


@pytest.fixture(params=["moto", "versitygw"])
def s3_server(request: pytest.FixtureRequest) -> S3Server:
    """Each S3 server of this machine, one after the other."""
    server: S3Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def buckets(s3_server: S3Server) -> Iterator[Buckets]:
    """A fresh legacy and a fresh production bucket, in each S3 server."""
    with fresh_buckets(s3_server) as found:
        yield found


@pytest.fixture
def moto_buckets(moto: S3Server) -> Iterator[Buckets]:
    """The same in moto only, which takes every key as it is."""
    with fresh_buckets(moto) as found:
        yield found


@pytest.fixture
def versitygw_buckets(versitygw: S3Server) -> Iterator[Buckets]:
    """The same in versitygw only, which checks credentials and digests."""
    with fresh_buckets(versitygw) as found:
        yield found


TRANSFERS = {
    "moto": ("moto", "moto"),
    "versitygw": ("versitygw", "versitygw"),
    "moto-to-versitygw": ("moto", "versitygw"),
    "versitygw-to-moto": ("versitygw", "moto"),
}
"""The servers of both sides: where they are one, it copies by itself; where they are two, objects are streamed."""
BY_DAY = {QUICK_SERVER, "moto-to-versitygw"}
"""Those that `make test` takes; the others are for the night."""


@pytest.fixture
def table(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[EntryTable]:
    """An empty table of entries, to which DATABASE_URL leads; no S3."""
    monkeypatch.setenv("DATABASE_URL", database)
    with closing(EntryTable(database)) as table:
        yield table


@pytest.fixture
def ten(table: EntryTable) -> EntryTable:
    """A table with one waiting batch of ten entries, which may be tried three times."""
    table.plan["migration"]["max_attempts"] = 3
    table.add_legacy(range(10))
    table.enqueue(10)
    return table


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
def migration(request: pytest.FixtureRequest, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration within versitygw, which is quick, or within moto where there is no versitygw."""
    buckets = request.getfixturevalue(f"{QUICK_SERVER}_buckets")
    return make_migration(buckets, buckets)


@pytest.fixture
def moto_migration(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration within moto, which takes every key as it is."""
    return make_migration(moto_buckets, moto_buckets)


@pytest.fixture
def versitygw_migration(versitygw_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration within versitygw, which is fast and checks credentials."""
    return make_migration(versitygw_buckets, versitygw_buckets)


@pytest.fixture
def plug_in(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlugIn]:
    """A package of somebody else, with queues that rowferry does not know."""
    package = PlugIn(tmp_path_factory.mktemp("site"), monkeypatch)
    yield package
    package.uninstall()


@pytest.fixture
def noted(table: EntryTable, plug_in: PlugIn, tmp_path: Path) -> EntryTable:
    """Thirty rows that its queues, which need no S3, work on, and the plan for it: no side."""
    table.execute(NOTES)
    table.insert({str(number): f"{TO}u{number}/me.png" for number in range(30)})
    write_plan(table, tmp_path, {"note": {"then": ["echo"]}})
    return table


@pytest.fixture
def run_rowferry(tmp_path: Path) -> Run:
    """Run a command in a process of its own, in an empty folder."""
    return run_rowferry_in(tmp_path)


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Iterator[RequestLog]:
    """A logging proxy in front of versitygw, which is the faster server, or of moto where there is no versitygw."""
    with logged(request.getfixturevalue(QUICK_SERVER).endpoint_url) as log:
        yield log


@pytest.fixture
def logged_migration(
    request: pytest.FixtureRequest, log: RequestLog, make_migration: Callable[..., Migration]
) -> Migration:
    """An empty migration whose workers reach S3 through the logging proxy."""
    buckets = request.getfixturevalue(f"{QUICK_SERVER}_buckets")
    migration = make_migration(buckets, buckets)
    migration.reach_through(log.endpoint_url)
    return migration


SERVERS = {
    "database_servers",
    "distribution_postgres",
    "moto",
    "versitygw",
    "s3_server",
    "any_migration",
    "log",
    "logged_migration",
}
"""Fixtures that stand for a server: a test that needs none of them, directly or not, may be of the fast tier."""

STARTS_PROCESSES = {
    *("bench", "conformance", "rowferry_lab.servers.postgres", "rowferry_lab.servers.s3_servers", "subprocess"),
    *("support.postgres.pgbouncer", "support.processes.cli", "support.processes.prometheus_server"),
    *("support.processes.several_hosts", "support.processes.terminal", "support.processes.worker_process"),
    *("support.secrets.environment", "torture"),
}
"""Modules that start processes: a file of tests that takes something from one of them is not of the fast tier."""


def needs_server(item: pytest.Item) -> bool:
    return bool(SERVERS.intersection(getattr(item, "fixturenames", ())))


def is_fast(item: pytest.Item) -> bool:
    """Return whether a test starts no process: no server, no command, no worker."""
    if needs_server(item) or item.get_closest_marker("soak"):
        return False
    module = item.getparent(pytest.Module)
    return module is None or not starts_processes(module.obj)


@cache
def starts_processes(module: ModuleType) -> bool:
    """Return whether a file of tests takes something from a module that starts processes."""
    taken = vars(module).values()
    sources = {value.__name__ for value in taken if isinstance(value, ModuleType)}
    sources |= {value.__module__ for value in taken if isinstance(value, FunctionType | type)}
    return any(source == name or source.startswith(f"{name}.") for source in sources for name in STARTS_PROCESSES)


def keep_group(item: pytest.Item) -> None:
    """Write the group of a test into its id, by which xdist sends a whole group to one worker.

    xdist 3.8 writes it into an attribute that pytest 9.2 does not read any more.
    """
    mark = item.get_closest_marker("xdist_group")
    if mark and hasattr(item, "_id") and hasattr(item.config, "workerinput"):
        item._id = type(item._id).parse(f"{item.nodeid}@{mark.args[0]}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fast tier, and run it first; then what has to run one after the other, since that ends last."""
    for item in items:
        if item.get_closest_marker("texts") and needs_server(item):
            raise pytest.UsageError(f"{item.nodeid} is marked texts, but needs a server: move it to another file.")
        if is_nightly(item):
            item.add_marker(pytest.mark.soak)
        if is_fast(item):
            item.add_marker(pytest.mark.fast)
        keep_group(item)
    items.sort(key=lambda item: (not item.get_closest_marker("fast"), not item.get_closest_marker("xdist_group")))


def pytest_collection_finish() -> None:
    """Exempt all objects made so far from garbage collection, which looked at all of them for each test."""
    begin_hypothesis()
    gc.collect()
    gc.freeze()


@given(none())
def begin_hypothesis(_: None) -> None:
    """Run hypothesis once before `gc.freeze`: it uses `gc.get_referrers`, which does not see frozen objects."""
