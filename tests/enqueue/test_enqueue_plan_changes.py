"""A plan that changed is taken, or refused while batches of the old one wait; one that does not fit adds nothing."""

import pytest

from rowferry.errors import UsageError
from support.entries.entry_table import EntryTable
from support.queue.waiting_ranges import finish, two_tables

CHANGES = {
    "legacy bucket": lambda plan: plan["legacy"].update(bucket="another"),
    "production endpoint": lambda plan: plan["production"].update(endpoint_url="http://elsewhere"),
    "prefix": lambda plan: plan["entries"][0].update(to="portrait/"),
    "where": lambda plan: plan["entries"][0].update(where="id > 5"),
    "no such entries": lambda plan: plan["entries"][0].update(table="public.covers"),
}


@pytest.mark.parametrize("status", ["INIT", "ERROR"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_plan_is_refused_while_batches_of_the_old_one_wait(
    change: str, status: str, table: EntryTable
) -> None:
    two_tables(table)
    del table.plan["entries"][1]
    table.plan["migration"]["name"] = "Avatars"
    table.enqueue(limit=5)
    finish(table, table.batch(), status)
    before = table.execute("select * from rowferry.migration"), table.batches()
    CHANGES[change](table.plan)
    with pytest.raises(UsageError, match=r'^Migration "Avatars" has 1 batches waiting or in ERROR .*[^.]\.$'):
        table.enqueue()
    assert (table.execute("select * from rowferry.migration"), table.batches()) == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_plan_is_taken_once_nothing_waits(change: str, table: EntryTable) -> None:
    two_tables(table)
    del table.plan["entries"][1]
    table.enqueue(limit=5)
    finish(table, table.batch(), "DONE")
    CHANGES[change](table.plan)
    assert table.enqueue()[0].entries > 0
    assert table.execute("select revision from rowferry.migration") == [{"revision": 2}]


def test_entries_may_be_added_to_a_plan_whose_batches_wait(table: EntryTable) -> None:
    two_tables(table)
    second = table.plan["entries"].pop()
    table.enqueue()
    table.plan["entries"].append(second)
    table.plan["legacy"]["profile"] = "another"
    assert [done.entries for done in table.enqueue()] == [0, 10]


def test_two_migrations_of_one_table_do_not_see_each_other(table: EntryTable) -> None:
    table.add_legacy(range(10))
    table.enqueue()
    table.plan["migration"]["name"] = "others"
    assert table.enqueue()[0].entries == 10


@pytest.mark.parametrize("mistake", [{"table": "public.nothing"}, {"id": "nothing"}, {"key": "nothing"}])
def test_a_plan_that_does_not_fit_adds_nothing(mistake: dict[str, str], table: EntryTable) -> None:
    two_tables(table)
    table.plan["entries"][1] |= mistake
    with pytest.raises(UsageError, match="nothing"):
        table.enqueue()
    assert table.batches() == []
    assert table.execute("select from rowferry.migration") == []
