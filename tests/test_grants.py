"""The grants that `rowferry init --grants` words are enough for a whole migration, and for nothing else."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql

from entry_table import EntryTable
from migration import Migration
from rowferry.database import connect
from rowferry.errors import UserMistake
from rowferry.grants import PURPOSES, Purpose, apply_grants, compose_grants
from rowferry.statements import list_sql

Roles = dict[Purpose, str]
PASSWORD = "not a secret"


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    """One role a purpose, that may log in and has been granted nothing yet."""
    with ExitStack() as until:
        yield {purpose: until.enter_context(new_role(database)) for purpose in PURPOSES}


@contextmanager
def new_role(dsn: str) -> Iterator[str]:
    name = sql.Identifier(f"a {uuid4().hex}")
    make, drop = "create role {} login password {}", "drop owned by {0}; drop role {0}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL(make).format(name, sql.Literal(PASSWORD)))
        try:
            yield name.as_string().strip('"')
        finally:
            connection.execute(sql.SQL(drop).format(name))


def grant(table: EntryTable, roles: Roles) -> None:
    with connect("init", autocommit=True) as connection:
        for purpose, role in roles.items():
            apply_grants(connection, compose_grants(role, [purpose], table.read_plan()))


def log_in(table: EntryTable, role: str) -> str:
    """Return the DSN of the test's database for another role."""
    return psycopg.conninfo.make_conninfo(table.dsn, user=role, password=PASSWORD)


def test_a_whole_migration_works_with_these_grants_only(
    migration: Migration, roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant(migration, roles)
    migration.fill(5)
    migration.add_row(6, "image/nowhere.png")
    migration.write_plan()
    run_as = {purpose: {"DATABASE_URL": log_in(migration, role)} for purpose, role in roles.items()}
    assert migration.run("enqueue", "--yes", "--batch-size", "2", **run_as["enqueuer"]).returncode == 0
    assert migration.run("worker", "--until-empty", **run_as["worker"]).returncode == 0
    for purpose in ("enqueuer", "worker"):
        assert migration.run("status", **run_as[purpose]).returncode == 0
    assert "NoSuchKey" in migration.run("errors", "--entries", **run_as["operator"]).stdout
    assert "1 batch" in migration.run("requeue", "--all", **run_as["operator"]).stdout
    assert migration.run("worker", "--until-empty", **run_as["worker"]).returncode == 0
    migration.audit(legacy_left=[6])


QUEUE = "rowferry.batch_queue"
EVERYBODY: dict[str, tuple[Purpose, ...]] = {
    "delete from public.avatars": PURPOSES,
    "insert into public.avatars (id, path) values (9, 'image/9')": PURPOSES,
    "update public.avatars set id = 9": PURPOSES,
    "update public.avatars set title = 'mine'": PURPOSES,
    "select title from public.avatars": PURPOSES,
    "truncate public.avatars": PURPOSES,
    "drop table public.avatars": PURPOSES,
    "update public.avatars set path = 'avatar/1'": ("enqueuer", "operator"),
    "select id, path from public.avatars": ("operator",),
    f"delete from {QUEUE}": PURPOSES,
    f"truncate {QUEUE}": PURPOSES,
    f"update {QUEUE} set migrated = 100": PURPOSES,
    f"update {QUEUE} set status = 'DONE'": ("enqueuer", "worker"),
    f"insert into {QUEUE} (migration_id, payload, entry_count, status) values (1, '{{}}', 0, 'DONE')": PURPOSES,
    f"insert into {QUEUE} (migration_id, payload, entry_count) values (1, '{{}}', 0)": ("worker", "operator"),
    "update rowferry.migration set plan = '{}'": PURPOSES,
    "update rowferry.migration set paused_at = now()": ("enqueuer", "worker"),
    "delete from rowferry.migration": PURPOSES,
    "delete from rowferry.batch_attempt": PURPOSES,
    "delete from rowferry.entry_failure": PURPOSES,
    "select * from rowferry.entry_failure": ("enqueuer", "worker"),
    "insert into rowferry.schema_migration (number, name, applied_by) values (99, 'mine', '9')": PURPOSES,
    "create table rowferry.mine ()": PURPOSES,
    "select rowferry.register_migration('mine', '{}')": ("worker", "operator"),
    "select rowferry.claim_batch('{migrate}')": ("enqueuer", "operator"),
    "select rowferry.claim_more(1, 1)": ("enqueuer", "operator"),
    "select rowferry.begin_attempts('{1}', '{0}', 'mine')": ("enqueuer", "operator"),
    "select rowferry.finish_idle('{1}', '{1}')": ("enqueuer", "operator"),
    "select rowferry.fail_batch(1, 1, 'ERROR', '0', '')": ("enqueuer", "operator"),
    "select rowferry.requeue()": ("enqueuer", "worker"),
    "select rowferry.pause()": ("enqueuer", "worker"),
}
"""What may not be done, and by whom; by Grafana's role none of it."""


@pytest.mark.parametrize("purpose", PURPOSES)
def test_everything_else_is_refused(table: EntryTable, roles: Roles, purpose: Purpose) -> None:
    table.execute("alter table public.avatars add column title text")
    grant(table, roles)
    allowed: list[str] = []
    with psycopg.connect(log_in(table, roles[purpose]), autocommit=True) as connection:
        for query, refused in EVERYBODY.items():
            if purpose in {*refused, "grafana"}:
                try:
                    connection.execute(query.encode())
                except errors.InsufficientPrivilege:
                    continue
                allowed.append(query)
    assert allowed == []


def test_a_condition_takes_the_whole_table(table: EntryTable, roles: Roles) -> None:
    table.plan["entries"][0]["where"] = "title is null"
    words = compose_grants("reader", ["enqueuer"], table.read_plan()).as_string()
    assert 'grant select on "public"."avatars" to "reader"' in words
    assert "may name any column" in words
    table.execute("alter table public.avatars add column title text")
    grant(table, roles)
    with psycopg.connect(log_in(table, roles["enqueuer"])) as connection:
        connection.execute("select title from public.avatars")


def test_every_view_may_be_read_by_everybody(table: EntryTable, roles: Roles) -> None:
    grant(table, roles)
    for role in roles.values():
        with psycopg.connect(log_in(table, role)) as connection:
            for path in list_sql("views"):
                connection.execute(sql.SQL("select * from rowferry.{}").format(sql.Identifier(path.stem)))


def test_the_role_of_grafana_sees_the_views_and_no_table(table: EntryTable, roles: Roles) -> None:
    grant(table, roles)
    tables = table.execute(
        "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in "
        "('rowferry', 'public')"
    )
    with psycopg.connect(log_in(table, roles["grafana"]), autocommit=True) as connection:
        for row in tables:
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(f"select from {row['name']}".encode())
    assert {"public.avatars", "rowferry.batch_queue"} < {row["name"] for row in tables}


def test_every_function_belongs_to_a_purpose_but_for_pruning_and_the_trigger() -> None:
    """Only the owner of the queue may delete from it."""
    words = compose_grants("r", PURPOSES, None).as_string()
    missing = [path.stem for path in list_sql("functions") if f"rowferry.{path.stem}" not in words]
    assert missing == ["prune_batches", "reset_requeued_batch"]


def test_nobody_else_may_run_the_functions(table: EntryTable, roles: Roles) -> None:
    with psycopg.connect(log_in(table, roles["worker"])) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("select rowferry.claim_batch('{migrate}')")


@pytest.mark.parametrize("name", ["plain", "Mixed Case", 'with "quotes"', "50%", "ünï"])
def test_names_of_every_kind_are_quoted(table: EntryTable, name: str) -> None:
    quoted = sql.Identifier(name).as_string()
    table.execute(f"create table public.{quoted} ({quoted} bigint primary key, path text)".replace("%", "%%"), ())
    table.plan["entries"][0] |= {"table": f"public.{quoted}", "id": name}
    with new_role(table.dsn) as role:
        grant(table, {"worker": role})


def test_printed_grants_change_nothing_and_need_no_database(migration: Migration) -> None:
    migration.write_plan()
    done = migration.run("init", "--grants", "app worker", "--for", "worker", DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert done.returncode == 0
    assert 'grant update ("path") on "public"."avatars" to "app worker";' in done.stdout
    assert "register_migration" not in done.stdout


def test_printed_grants_are_sql_that_can_be_run(migration: Migration) -> None:
    migration.write_plan()
    with new_role(migration.dsn) as role:
        words = migration.run("init", "--grants", role).stdout
        migration.execute(words)
        assert migration.run("status", DATABASE_URL=log_in(migration, role)).returncode == 0


def test_applied_grants_are_printed_too(migration: Migration) -> None:
    migration.write_plan()
    with new_role(migration.dsn) as role:
        done = migration.run("init", "--grants", role, "--apply")
        assert done.returncode == 0
        assert "grant execute on function" in done.stdout
        assert migration.run("enqueue", "--yes", DATABASE_URL=log_in(migration, role)).returncode == 0


def test_a_role_that_does_not_exist_is_named(table: EntryTable) -> None:
    with connect("init", autocommit=True) as connection, pytest.raises(UserMistake, match="nobody here"):
        apply_grants(connection, compose_grants("nobody here", PURPOSES, None))


def test_without_a_plan_the_tables_are_left_out_and_that_is_said(migration: Migration) -> None:
    done = migration.run("init", "--grants", "someone", ROWFERRY_PLAN="")
    assert done.returncode == 0
    assert "avatars" not in done.stdout
    assert "add --plan" in done.stdout


def test_a_plan_that_was_named_and_is_not_there_is_a_mistake(migration: Migration) -> None:
    done = migration.run("init", "--grants", "someone", "--plan", "nowhere.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("rowferry: There is no plan at nowhere.toml")


@pytest.mark.parametrize(
    "arguments", [["--apply"], ["--for", "worker"], ["--grants", ""], ["--grants", "a", "--for", "x"]]
)
def test_options_that_do_not_go_together_are_one_sentence(migration: Migration, arguments: list[str]) -> None:
    done = migration.run("init", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("rowferry: ")
    assert done.stderr.count("\n") == 1
