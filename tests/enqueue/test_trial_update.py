"""A check updates a few rows as a worker would: what PostgreSQL refuses for every row is known before a copy."""

import pytest

from support.entries.checks import check_rows_of, row_problems
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.queue.paused_migration import state_of, work_until_paused

pytestmark = pytest.mark.versions

NO_IDENTITY = (
    "alter table public.avatars drop constraint avatars_pkey",
    "alter table public.avatars add constraint avatars_id_key unique (id), alter column id set not null",
    "create publication everything for table public.avatars",
)
SETTING = (
    """
    create function public.note_user() returns trigger language plpgsql as $$
    begin
        perform current_setting('app.user_id');
        return new;
    end $$
    """,
    "create trigger note_user before update on public.avatars for each row execute function public.note_user()",
)
KEPT = (
    "create function public.keep() returns trigger language plpgsql as 'begin return null; end'",
    "create trigger keep before update on public.avatars for each row execute function public.keep()",
)
REFUSED = (
    (NO_IDENTITY, "replica identity", "replica identity using index"),
    (SETTING, "app.user_id", "PGOPTIONS='-c NAME=VALUE'"),
)


@pytest.mark.parametrize(("statements", "word", "remedy"), REFUSED)
def test_what_each_row_would_meet_is_a_problem(
    statements: tuple[str, ...], word: str, remedy: str, table: EntryTable
) -> None:
    table.add_legacy(range(1, 9))
    before = table.execute("select id, path, xmin::text from public.avatars order by id")
    assert row_problems(table) == []
    for each in statements:
        table.execute(each)
    (found,) = [finding for finding in check_rows_of(table) if finding.level == "problem"]
    assert word in found.what
    assert remedy in found.remedy
    assert table.execute("select id, path, xmin::text from public.avatars order by id") == before


def test_a_setting_of_the_session_is_taken(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.add_legacy(range(1, 9))
    for each in SETTING:
        table.execute(each)
    monkeypatch.setenv("PGOPTIONS", "-c app.user_id=7")
    assert row_problems(table) == []


def test_a_trigger_that_may_mean_some_rows_is_a_part(table: EntryTable) -> None:
    table.add_legacy(range(1, 9))
    for each in KEPT:
        table.execute(each)
    assert row_problems(table) == []
    assert [f.level for f in check_rows_of(table) if "left as it was" in f.what] == ["part"]


@pytest.mark.parametrize(("statements", "word", "remedy"), REFUSED)
def test_in_a_run_the_migration_is_paused_and_no_entry_is_blamed(
    statements: tuple[str, ...], word: str, remedy: str, migration: Migration
) -> None:
    migration.given(40, 4)
    for each in statements:
        migration.execute(each)
    work_until_paused(migration)
    is_paused, reason = state_of(migration)
    assert is_paused
    assert word in str(reason)
    assert remedy in str(reason)
    assert migration.execute("select from rowferry.entry_failure") == []
