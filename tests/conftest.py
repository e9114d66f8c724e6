"""Fixtures that every test may ask for: databases, commands, queues of a package."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from support.entries.entry_table import TO, EntryTable
from support.postgres.ordinary import reason_to_be_superuser
from support.postgres.servers import INSTALLATIONS, POSTGRES, DatabaseServers, find_distribution_postgres
from support.processes.cli import Run, run_rowferry_in
from support.processes.time_limit import pytest_timeout_set_timer  # noqa: F401 - a hook of pytest-timeout
from support.queue.plug_in import NOTES, PlugIn, write_plan
from support.queue.workers_here import run_here_in

pytest_plugins = [
    "support.running.plugin",
    "support.running.quick",
    "support.running.tiers",
    "support.s3.fixtures",
    "support.entries.fixtures",
]

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("wandering", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")
"""The same examples in every run, however slow the machine is; `--hypothesis-profile=wandering` looks at others."""
providers.is_local_module_file = lambda path: False  # pyright: ignore[reportPrivateImportUsage]
"""Else it also draws literals of our source files: other ones after each commit, and in folders called `tests`."""

FOREIGN_SETTINGS = ("DATABASE_URL", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE", "PGOPTIONS")
FOREIGN_AWS_SETTINGS = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION")

OF_TESTS = ("ROWFERRY_TEST_",)
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
def database(database_servers: DatabaseServers, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The DSN of a database of this test's own, to which DATABASE_URL leads: initialised, in the first PostgreSQL."""
    with database_servers.fresh_database(POSTGRES) as dsn:
        monkeypatch.setenv("DATABASE_URL", dsn)
        yield dsn


@pytest.fixture(params=sorted(INSTALLATIONS), ids="postgresql-{}".format)
def any_database(
    request: pytest.FixtureRequest, database_servers: DatabaseServers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The same in each PostgreSQL that is tested with, one after the other."""
    with database_servers.fresh_database(INSTALLATIONS[request.param]) as dsn:
        monkeypatch.setenv("DATABASE_URL", dsn)
        yield dsn


@pytest.fixture(scope="session")
def distribution_postgres() -> Path:
    """The programs of a PostgreSQL as distributions build it, with TLS, JIT and ICU, which the embedded one has not."""
    found = find_distribution_postgres()
    if found is None:
        pytest.skip("no PostgreSQL with TLS is here: the embedded one has none, Debian's package `postgresql` has")
    return found[1]


@pytest.fixture
def distribution_database(
    distribution_postgres: Path, database_servers: DatabaseServers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The same in such a PostgreSQL."""
    with database_servers.fresh_database(distribution_postgres) as dsn:
        monkeypatch.setenv("DATABASE_URL", dsn)
        yield dsn


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
def run_rowferry(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a command in an empty folder; where the file of the test says WORKERS_HERE, in this process with its workers.

    Elsewhere, a command that starts processes is one of its own.
    """
    return run_here_in(tmp_path) if getattr(request.module, "WORKERS_HERE", False) else run_rowferry_in(tmp_path)
