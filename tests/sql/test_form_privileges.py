"""The grants of a role name the columns of each form, no other; a role with just these can enqueue, work and revert."""

import pytest
from psycopg import sql

from support.entries.checks import check_rows_of
from support.entries.forms import FORMS
from support.entries.migration import Migration
from support.entries.prepared_forms import prepare
from support.postgres.privileges import list_privileges
from support.postgres.roles import grant, log_in, new_roles

SIMPLE = "state"
"""The form that stands for all where only the version of PostgreSQL differs."""


@pytest.mark.by_day("state", "url", "composite id", "jsonb")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.versions if name == SIMPLE else ()) for name in FORMS]
)
def test_roles_with_the_grants_of_a_form_can_do_all_of_it(
    migration: Migration, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    prepare(migration, name)
    migration.execute("alter table public.things add column secret text")
    entries = migration.read_plan().entries[0]
    with new_roles(migration.dsn) as roles:
        grant(migration, roles)
        may = {words for words in list_privileges(migration.dsn, roles["worker"]) if "public.things" in words}
        wanted = {f"UPDATE public.things({column})" for column in entries.written_columns}
        if entries.reads_other_columns:
            assert may == wanted | {"SELECT public.things"}
        else:
            assert may == wanted | {f"SELECT public.things({column})" for column in entries.columns}
        for queue in ("migrate", "verify", "revert"):
            monkeypatch.setenv("DATABASE_URL", log_in(migration, roles["enqueuer"]))
            assert migration.enqueue(queue=queue)[0].entries
            monkeypatch.setenv("DATABASE_URL", log_in(migration, roles["worker"]))
            migration.work(queue)
            assert migration.statuses() == {"DONE"}, migration.failures()
        problems = [found.what for found in check_rows_of(migration) if found.level == "problem"]
    assert [words for words in problems if "things" in words] == []


@pytest.mark.versions
@pytest.mark.parametrize("name", ["state", "state and prefix", "computed"])
def test_a_check_names_the_columns_that_a_role_may_not_update(
    migration: Migration, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    prepare(migration, name)
    written = migration.read_plan().entries[0].written_columns
    with new_roles(migration.dsn) as roles:
        grant(migration, roles)
        revoke = sql.SQL("revoke update ({}) on public.things from {}")
        migration.execute(revoke.format(sql.Identifier(written[-1]), sql.Identifier(roles["worker"])))
        monkeypatch.setenv("DATABASE_URL", log_in(migration, roles["worker"]))
        problems = [found.what for found in check_rows_of(migration) if found.level == "problem"]
    columns = f"public.things.{written[0]}" if len(written) == 1 else f"{', '.join(written)} of public.things"
    assert f"this role may not update {columns}" in problems
