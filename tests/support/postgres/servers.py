"""The PostgreSQL servers that tests run against, with a database for each test that is thrown away."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.postgres_programs import choose_postgres_binaries, find_embedded_binaries, run_program
from rowferry_lab.servers.server_process import choose_account
from support.checkout import ROOT
from support.postgres.ordinary import administrator, drop_database, make_own_database, ordinary_postgres

OLDEST_POSTGRES = 14
TEMPLATE = "rowferry_template"
MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 3 * 1024**3
TEST_SETTINGS = {"max_prepared_transactions": "4", "autovacuum": "off", "jit": "on"}
"""What a test holds locked, and what the planner knows of its tables, must not depend on when the daemon passes by.

JIT is on as it is at users': what is compiled there is compiled here, where the installation can. Connections are kept
for others from PostgreSQL 16 on, where that can be set.
"""


def find_installations() -> dict[int, Path]:
    """Return the programs of the versions of PostgreSQL to test with, the one that most tests take first.

    ROWFERRY_TEST_POSTGRES names them; without it, it is the newest that is here. `make test-versions` asks the others.
    """
    found = find_programs()
    named = [int(version) for version in os.environ.get("ROWFERRY_TEST_POSTGRES", "").split()]
    usable = [version for version in found if version >= OLDEST_POSTGRES]
    return {version: found[version] for version in named or sorted(usable)[-1:]}


def find_postgres_binaries() -> list[Path]:
    """Return the folder of programs of each PostgreSQL here: the embedded one first, then PATH, then Debian's."""
    on_path = shutil.which("initdb")
    candidates = [find_embedded_binaries(), Path(on_path).resolve().parent if on_path else None]
    candidates.extend(sorted(Path("/").glob("usr/lib/postgresql/*/bin"), reverse=True))
    found = [folder.resolve() for folder in candidates if folder and (folder / "postgres").is_file()]
    return list(dict.fromkeys(found))


def read_version(binaries: Path) -> int:
    """Return the major version, such as 18, of the PostgreSQL in this folder."""
    words = run_program(binaries / "postgres", "--version", account=None, folder=binaries).split()
    return int(words[2].split(".")[0].rstrip("abcdefghijklmnopqrstuvwxyz"))


def find_programs() -> dict[int, Path]:
    """Return the programs of each version that is here: embedded, of the machine, or fetched for the matrix."""
    fetched = filter(is_runnable, sorted((ROOT / ".tools" / "postgres").glob("*/bin")))
    found: dict[int, Path] = {}
    for binaries in (*find_postgres_binaries(), *fetched):
        found.setdefault(read_version(binaries), binaries)
    return found


def is_runnable(binaries: Path) -> bool:
    """Return whether the account that servers run as may run these programs: it may not enter every checkout."""
    try:
        run_program(binaries / "postgres", "--version", account=choose_account(), folder=Path("/"))
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


INSTALLATIONS = find_installations()
POSTGRES = next(iter(INSTALLATIONS.values()), None)
"""The programs of the PostgreSQL that tests take which do not ask for each version."""


@cache
def find_distribution_postgres() -> tuple[int, Path] | None:
    """Return version and programs of a PostgreSQL as distributions build it, with TLS, JIT and ICU; None without any.

    One of those under test comes first.
    """
    for version, binaries in (INSTALLATIONS | find_programs()).items():
        without_tls = b"SSL is not supported by this build" in (binaries / "postgres").read_bytes()
        if version >= OLDEST_POSTGRES and not without_tls:
            return version, binaries
    return None


def find_psql() -> Path:
    """Return a psql: of the PostgreSQL under test, or of any other, since some packages hold only a server."""
    for folder in (*INSTALLATIONS.values(), *find_postgres_binaries()):
        if (folder / "psql").exists():
            return folder / "psql"
    pytest.skip("there is no psql here")


class DatabaseServers:
    """The PostgreSQL servers of this test process, each started at its first use, with an initialised template."""

    def __init__(self, until: ExitStack) -> None:
        self._until = until
        self._servers: dict[Path, EmbeddedPostgres] = {}
        self._copies: dict[int, sql.Composed] = {}

    @contextmanager
    def fresh_database(self, binaries: Path | None) -> Iterator[str]:
        """Yield the DSN of a database of its own to which `rowferry init` has been applied; drop it afterwards.

        It belongs to the ordinary role of the DSN.
        """
        server = self._find_or_start(binaries or choose_postgres_binaries())
        name = f"test_{uuid4().hex}"
        try:
            yield make_own_database(server.dsn(), name, self._copies[server.port])
        finally:
            drop_database(server.dsn(), name)

    def _find_or_start(self, binaries: Path) -> EmbeddedPostgres:
        if binaries not in self._servers:
            kept = {"reserved_connections": "2"} if read_version(binaries) >= 16 else {}
            with temporary_folders_in_memory():
                settings = TEST_SETTINGS | kept
                server = self._until.enter_context(ordinary_postgres(binaries=binaries, settings=settings))
            make_schema(make_own_database(server.dsn(), TEMPLATE))
            self._copies[server.port] = choose_copy(server)
            self._servers[binaries] = server
        return self._servers[binaries]


def choose_copy(server: EmbeddedPostgres) -> sql.Composed:
    """Return how to copy the template.

    From PostgreSQL 15 on, copying its files has to be asked for: it is seven times faster.
    """
    with administrator(server.dsn()) as connection:
        strategy = sql.SQL("strategy file_copy" if connection.info.server_version >= 150_000 else "")
    return sql.SQL("template {} {}").format(sql.Identifier(TEMPLATE), strategy)


def find_memory() -> Path | None:
    """Return the folder whose files are in memory, where there is plenty of it."""
    is_fit = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES and not is_noexec(MEMORY)
    return MEMORY if is_fit else None


@contextmanager
def temporary_folders_in_memory() -> Iterator[None]:
    """Make temporary folders in memory, where that can be: a database a test is a thousand files a test."""
    before = tempfile.tempdir
    if memory := find_memory():
        tempfile.tempdir = str(memory)
    try:
        yield
    finally:
        tempfile.tempdir = before


def is_noexec(folder: Path) -> bool:
    """Return whether programs may not run there, as copies of PostgreSQL's may have to."""
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def make_schema(dsn: str) -> None:
    """Prepare a database as `rowferry init` does."""
    from rowferry.db.schema import initialise

    with psycopg.Connection[DictRow].connect(dsn, row_factory=dict_row) as connection:
        initialise(connection)
