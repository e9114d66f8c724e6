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


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_plan_is_refused_while_batches_of_the_old_one_wait_and_taken_then(
    change: str, table: EntryTable
) -> None:
    two_tables(table)
    del table.plan["entries"][1]
    table.plan["migration"]["name"] = "Avatars"
    table.enqueue(limit=5)
    CHANGES[change](table.plan)
    for status in ("ERROR", "INIT"):
        finish(table, table.batch(), status)
        before = table.execute("select * from rowferry.migration"), table.batches()
        with pytest.raises(UsageError, match=r'^Migration "Avatars" has 1 batches waiting or in ERROR .*[^.]\.$'):
            table.enqueue()
        assert (table.execute("select * from rowferry.migration"), table.batches()) == before
    finish(table, table.batch(), "DONE")
    assert table.enqueue()[0].entries > 0
    assert table.execute("select revision from rowferry.migration") == [{"revision": 2}]


def test_entries_may_be_added_to_a_plan_whose_batches_wait_and_another_migration_does_not_see_it(
    table: EntryTable,
) -> None:
    two_tables(table)
    second = table.plan["entries"].pop()
    table.enqueue()
    table.plan["entries"].append(second)
    table.plan["legacy"]["profile"] = "another"
    assert [done.entries for done in table.enqueue()] == [0, 10]
    table.plan["migration"]["name"] = "others"
    assert [done.entries for done in table.enqueue()] == [10, 10]


def test_a_plan_that_does_not_fit_adds_nothing(table: EntryTable) -> None:
    two_tables(table)
    _, fits = table.plan["entries"]
    for mistake in ({"table": "public.nothing"}, {"id": "nothing"}, {"key": "nothing"}):
        table.plan["entries"][1] = {**fits, **mistake}
        with pytest.raises(UsageError, match="nothing"):
            table.enqueue()
        assert table.batches() == []
        assert table.execute("select from rowferry.migration") == []
