"""Row-level security that hides or forbids rows is a problem."""

import pytest

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.errors import MigrationFault, UsageError
from rowferry_enqueue.check import Finding
from support.entries.checks import check_as_role, entries_of
from support.entries.entry_table import EntryTable

GRANTED = "select, update on public.avatars"
SOME = "row-level security of public.avatars may hide rows from this role, and a hidden row would stay behind"
NONE = "row-level security of public.avatars hides every row from this role"
FORBIDS_SOME = "row-level security of public.avatars may forbid this role to update rows"
FORBIDS_ALL = "row-level security of public.avatars lets this role update no row"
FINE = "public.avatars: id is unique, path is text, this role may read and update it"


@pytest.fixture
def secured(table: EntryTable) -> EntryTable:
    """A table with row-level security and four legacy rows."""
    table.execute("alter table public.avatars enable row level security")
    return table.add_legacy(range(4))


def problems_of(findings: list[Finding]) -> list[str]:
    return [finding.what for finding in findings if finding.level == "problem"]


POLICIES: tuple[tuple[list[str], list[str]], ...] = (
    ([], [NONE, FORBIDS_ALL]),
    (["using (id % 2 = 0)"], [SOME, FORBIDS_SOME]),
    (["for select using (true)"], [FORBIDS_ALL]),
    (["for select using (true)", "for update using (id > 0)"], [FORBIDS_SOME]),
    (["for select using (true)", "for update using (true) with check (id > 0)"], [FORBIDS_SOME]),
    (["as restrictive using (true)"], [NONE, FORBIDS_ALL]),
    (["using (true)", "as restrictive for select using (id > 0)"], [SOME]),
    (["to pg_monitor using (true)"], [NONE, FORBIDS_ALL]),
    (["for insert with check (true)"], [NONE, FORBIDS_ALL]),
    (["using (true)"], []),
    (["using (id > 0)", "using (true)"], []),
    (["using (true)", "as restrictive using (true)", "as restrictive for delete using (false)"], []),
    (["for select using (true)", "for update using (true)"], []),
)
"""Policies of the table, and the problems that they are."""


def test_row_level_security_that_hides_or_forbids_rows_is_a_problem(
    secured: EntryTable, subtests: pytest.Subtests
) -> None:
    for policies, expected in POLICIES:
        for number, policy in enumerate(policies):
            secured.execute(f"create policy p{number} on public.avatars {policy}")
        findings = check_as_role(secured, GRANTED)
        with subtests.test("; ".join(policies)):
            assert problems_of(findings) == expected
            assert (FINE in [finding.what for finding in findings]) == (not expected)
        for number in range(len(policies)):
            secured.execute(f"drop policy p{number} on public.avatars")


def test_rows_that_stay_need_not_be_updated(secured: EntryTable) -> None:
    secured.execute("create policy shown on public.avatars for select using (true)")
    assert problems_of(check_as_role(secured, GRANTED)) == [FORBIDS_ALL]
    secured.plan["entries"][0] = {**entries_of(secured), "rows": "stay"}
    assert problems_of(check_as_role(secured, GRANTED)) == []


def test_the_owner_sees_all_rows_unless_it_is_forced(secured: EntryTable) -> None:
    with connect("check", autocommit=True) as connection:
        entries = secured.read_plan().entries[0]
        queries = EntryQueries.of(connection, entries)
        queries.check(connection, update=True)
        secured.execute("alter table public.avatars force row level security")
        with pytest.raises(MigrationFault, match=r"Row-level security of public\.avatars hides every row"):
            queries.check(connection, update=False)
        secured.execute("create policy shown on public.avatars for select using (true)")
        queries.check(connection, update=False)
        with pytest.raises(MigrationFault, match=r"lets this role update no row"):
            queries.check(connection, update=True)


def test_nothing_is_enqueued_of_a_table_whose_rows_are_hidden(secured: EntryTable) -> None:
    secured.execute("alter table public.avatars force row level security")
    secured.execute("create policy half on public.avatars using (id % 2 = 0)")
    with pytest.raises(UsageError, match="may hide rows from this role"):
        secured.enqueue()
