"""The grants that `rowferry init --grants` words are enough for a whole migration; test_privileges: and no more."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors, sql

from rowferry.db.connection import connect
from rowferry.db.statements import list_sql
from rowferry.errors import UsageError
from rowferry_cli.setup.grants import PURPOSES, apply_grants, compose_grants
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.postgres.roles import Roles, grant, log_in, new_role, new_roles
from support.processes.cli import well


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    """One role a purpose, that may log in and has been granted nothing yet."""
    with new_roles(database) as roles:
        yield roles


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


def test_every_function_belongs_to_a_purpose_but_for_the_owners_and_the_triggers() -> None:
    """Only its owner may delete from the queue and count it anew; some functions are called by others alone."""
    words = compose_grants("r", PURPOSES, None).as_string()
    missing = {path.stem for path in list_sql("functions") if f"rowferry.{path.stem}" not in words}
    triggers = {path.stem for path in list_sql("functions") if "returns trigger" in path.read_text(encoding="utf-8")}
    inner = {
        "compact_tally",
        "seal_claim",
        "check_claim",
        "check_part",
        "check_worker",
        "hand_on",
        "lock_oldest",
        "refuse_claim",
        "take_place",
    }
    assert missing - triggers == {"prune_batches", "prune_leftovers", "prune_migrations", "recount_batches"} | inner


def test_nobody_else_may_run_the_functions(table: EntryTable, roles: Roles) -> None:
    with psycopg.connect(log_in(table, roles["worker"])) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("select rowferry.claim_batch('{1}', '{migrate}')")


@pytest.mark.parametrize("name", ["plain", "Mixed Case", 'with "quotes"', "50%", "ünï"])
def test_names_of_every_kind_are_quoted(table: EntryTable, name: str) -> None:
    quoted = sql.Identifier(name).as_string()
    table.execute(f"create table public.{quoted} ({quoted} bigint primary key, path text)".replace("%", "%%"), ())
    table.plan["entries"][0] |= {"table": f"public.{quoted}", "id": name}
    with new_role(table.dsn) as role:
        grant(table, {"worker": role})


def test_printed_grants_change_nothing_and_need_no_database(migration: Migration) -> None:
    migration.write_plan()
    arguments = ("init", "--grants", "app worker", "--for", "worker")
    done = well(migration.run(*arguments, DATABASE_URL="postgresql://127.0.0.1:1/x"))
    assert 'grant update ("path") on "public"."avatars" to "app worker";' in done.stdout
    assert "register_migration" not in done.stdout


def test_applied_grants_are_printed_too(migration: Migration) -> None:
    migration.write_plan()
    with new_role(migration.dsn) as role:
        assert "grant execute on function" in well(migration.run("init", "--grants", role, "--apply")).stdout
        assert migration.run("enqueue", "--yes", DATABASE_URL=log_in(migration, role)).returncode == 0


def test_a_role_that_does_not_exist_is_named(table: EntryTable) -> None:
    with connect("init", autocommit=True) as connection, pytest.raises(UsageError, match="nobody here"):
        apply_grants(connection, compose_grants("nobody here", PURPOSES, None))


def test_without_a_plan_the_tables_are_left_out_and_that_is_said(migration: Migration) -> None:
    done = well(migration.run("init", "--grants", "someone", ROWFERRY_PLAN=""))
    assert "avatars" not in done.stdout
    assert "add --plan" in done.stdout
