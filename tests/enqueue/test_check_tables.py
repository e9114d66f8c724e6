"""A check finds what is wrong with tables, columns, conditions and the rights on them."""

import pytest

from support.entries.checks import check_as_role, check_rows_of, entries_of, row_problems
from support.entries.entry_table import EntryTable


def test_a_table_that_does_not_exist_and_both_missing_columns_are_named(table: EntryTable) -> None:
    entries_of(table).update(id="uid", key="file")
    assert row_problems(table) == ["public.avatars has no column uid", "public.avatars has no column file"]
    entries_of(table)["table"] = "public.nowhere"
    assert row_problems(table) == ["there is no table public.nowhere in this database"]


def test_percent_signs_in_conditions_and_names_are_taken_as_they_are(table: EntryTable) -> None:
    table.execute('create table public."50% off" (id bigint primary key, path text)')
    entries_of(table).update(table='public."50% off"', where="path like 'image/%(x)s%' or path like '%%'")
    table.execute("""insert into public."50% off" values (1, 'image/a')""")
    assert row_problems(table) == []


NO_UPDATE = ["this role may not update public.avatars.path"]
NO_SELECT = ["this role may not select id and path of public.avatars"]
GRANTS = (
    ("select (id, path)", NO_UPDATE),
    ("update", NO_SELECT),
    ("select (id), update (path)", NO_SELECT),
    ("select (id, path), update (id)", NO_UPDATE),
    ("select (id, path), update (path)", []),
)


def test_what_the_role_may_not_do_is_a_problem(table: EntryTable, subtests: pytest.Subtests) -> None:
    for granted, expected in GRANTS:
        with subtests.test(granted):
            findings = check_as_role(table, f"{granted} on public.avatars")
            assert [finding.what for finding in findings if finding.level == "problem"] == expected


def test_a_condition_needs_the_right_to_read_what_it_names(table: EntryTable) -> None:
    table.execute("alter table public.avatars add column deleted_at timestamptz")
    entries_of(table)["where"] = "deleted_at is null"
    findings = check_as_role(table, "select (id, path), update (path) on public.avatars")
    (problem,) = [finding for finding in findings if finding.level == "problem"]
    assert "permission denied" in problem.what
    assert "--grants" in problem.remedy


def test_ids_in_another_order_than_any_index_are_noted(table: EntryTable) -> None:
    table.execute("create table public.odd (id bigint, tenant text, path text, primary key (tenant, id))")
    for columns, noted in ((["tenant", "id"], False), (["id", "tenant"], True)):
        entries_of(table).update(table="public.odd", id=columns)
        assert any("reads the whole table" in finding.what for finding in check_rows_of(table)) == noted
