"""One walk through all commands, as the least roles of docs/permissions.md; other tests are the database's owner."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry_cli.setup.grants import PURPOSES, Purpose, apply_grants, compose_grants
from support.entries.entry_table import FROM
from support.entries.files import add_file, make_table
from support.entries.migration import Migration
from support.postgres.ordinary import drop_database, make_own_database
from support.postgres.roles import log_in, new_role
from support.postgres.servers import find_psql
from support.s3.buckets import Buckets

pytestmark = [pytest.mark.versions, pytest.mark.timeout(900)]

Part = Purpose | str
OWNER, ALL = "owner", "enqueuer and worker"
WALK: tuple[tuple[Part, str], ...] = (
    (OWNER, "init"),
    ("enqueuer", "plan"),
    (ALL, "check"),
    ("enqueuer", "estimate"),
    ("enqueuer", "enqueue --yes --batch-size 2"),
    ("operator", "pause"),
    ("operator", "resume"),
    ("worker", "worker --processes 1 --until-empty"),
    ("enqueuer", "status"),
    ("enqueuer", "queues"),
    ("operator", "watch --once"),
    ("operator", "errors --entries"),
    ("operator", "requeue --all"),
    ("operator", "report"),
    (ALL, "migrate --yes --processes 1"),
    (ALL, "verify --yes --processes 1"),
    (ALL, "run verify --yes --processes 1"),
    ("operator", "pause --queue verify"),
    ("operator", "resume --queue verify"),
    (ALL, "revert --yes --processes 1"),
    ("enqueuer", "clean-uploads --older-than 1h --yes"),
    (OWNER, "prune --older-than 1s --migrations --yes"),
    (OWNER, "init"),
)
SWITCH: tuple[tuple[Part, str], ...] = (
    (ALL, "check"),
    (ALL, "cutover --yes --processes 1"),
    (ALL, "cutover --finish --yes --processes 1"),
    ("enqueuer", "status --no-objects"),
)
EXPECTED = {"report": 1, "migrate --yes --processes 1": 1}
"""One object is missing."""


@pytest.fixture
def migration(
    any_database: str, quick_buckets: Buckets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Migration]:
    """Entries whose rows move, one of them without an object, and files whose rows stay."""
    with closing(Migration(any_database, quick_buckets, quick_buckets, tmp_path)) as migration:
        for name, value in migration.environment.items():
            monkeypatch.setenv(name, value)
        migration.fill(5)
        migration.legacy.delete(f"{FROM}u5/me.png")
        migration.write_plan()
        yield migration


@pytest.fixture
def log_in_as(migration: Migration) -> Iterator[Callable[[Part], str]]:
    """Return the DSN of a role with the least rights for a part; the owner's for that of the owner."""
    with ExitStack() as until:
        roles = {part: until.enter_context(new_role(migration.dsn)) for part in (*PURPOSES, ALL)}

        def find(part: Part) -> str:
            if part == OWNER:
                return migration.dsn
            purposes: list[Purpose] = ["enqueuer", "worker"] if part == ALL else [part]  # pyright: ignore[reportAssignmentType]
            with connect("init", autocommit=True) as connection:
                apply_grants(connection, compose_grants(roles[part], purposes, migration.read_plan()))
            return log_in(migration, roles[part])

        yield find


def walk(migration: Migration, log_in_as: Callable[[Part], str], steps: tuple[tuple[Part, str], ...]) -> None:
    done = [(part, step, migration.run_here(*step.split(), DATABASE_URL=log_in_as(part))) for part, step in steps]
    version = server_version(migration.dsn)
    for part, step, one in done:
        sys.stdout.write(f"| {version} | {part} | `rowferry {step}` | {one.returncode} |\n")  # `pytest -rP` shows it
    wrong = {step: one.stderr for _, step, one in done if one.returncode != EXPECTED.get(step, 0)}
    assert wrong == {}


def test_every_command_ends_well(migration: Migration, log_in_as: Callable[[Part], str]) -> None:
    walk(migration, log_in_as, WALK)


@pytest.mark.must("a switch-over")
def test_an_application_is_switched(migration: Migration, log_in_as: Callable[[Part], str]) -> None:
    make_table(migration, "timestamptz")
    for number in range(1, 4):
        add_file(migration, number)
    migration.write_plan()
    walk(migration, log_in_as, SWITCH)


def test_a_dump_that_an_ordinary_role_restores_is_worked_on(migration: Migration, tmp_path: Path) -> None:
    """Half-way, with the triggers and the key that seals claims; after `rowferry init`, workers go on."""
    psql = find_psql()
    dump = psql.with_name("pg_dump")
    if not dump.exists() or int(run_program(dump).split()[2].split(".")[0]) < server_version(migration.dsn):
        pytest.skip("there is no pg_dump for this PostgreSQL here")
    migration.enqueue(2)
    with migration.at_work() as take_turn:
        take_turn()
    text = tmp_path / "dump.sql"
    run_program(dump, "--file", str(text), migration.dsn)
    # A pg_dump of 17 or later sets what older servers do not know.
    text.write_text(text.read_text(encoding="utf-8").replace("SET transaction_timeout = 0;\n", ""), encoding="utf-8")
    name = f"restored_{uuid4().hex}"
    restored = make_own_database(migration.dsn, name)
    try:
        run_program(psql, "-X", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", str(text), restored)
        steps = ("init", "worker --processes 1 --until-empty", "errors", "status")
        done = [migration.run(*step.split(), DATABASE_URL=restored) for step in steps]
        assert [one.returncode for one in done] == [0] * len(steps), [one.stderr for one in done]
        with psycopg.connect(restored) as connection:
            query = "select id from public.avatars where path like 'image/%' order by id"
            assert connection.execute(query).fetchall() == [(5,)], "the one without an object"
    finally:
        drop_database(migration.dsn, name)


def run_program(program: Path, *arguments: str) -> str:
    """Run one of PostgreSQL's programs to its end, and return what it prints; without arguments, its version."""
    command = [str(program), *(arguments or ("--version",))]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def server_version(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        return connection.info.server_version // 10_000
