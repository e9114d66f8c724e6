"""Ids of several columns: ranges, splits, crashes, time budgets and bounds are those of rows of values."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowferry.errors import UsageError
from rowferry.plan import Entries
from rowferry_enqueue.request import Within, split_id
from support.entries.entry_table import FROM, TO, EntryTable, keyed, trusted
from support.entries.migration import Migration
from support.processes.cli import list_errors
from support.queue.at_work import take_one_turn
from support.queue.queue_runs import outcomes, revert, verify

TABLE = """
create table public.things (tenant {type}, number numeric, path text, note text, primary key (tenant, number))
"""
IDS = ["tenant", "number"]


def make_things(table: EntryTable, tenant_type: str = "text") -> None:
    """Make a table whose ids have two columns, and give it to the plan."""
    table.execute("drop table if exists public.things")
    table.execute(trusted(TABLE.format(type=tenant_type)))
    table.plan_entries("public.things", **keyed("path", id=IDS))


def left(table: EntryTable) -> int:
    (row,) = table.execute("select count(*)::int as rows from public.things where path like 'image/%'")
    return row["rows"]


NOT_IN_ONE_RANGE = """
    select e.tenant, e.number
    from public.things as e
    left join rowferry.batch_queue as q
        on q.status in ('INIT', 'ERROR')
        and (e.tenant, e.number) >= ({first})
        and (e.tenant, e.number) <= ({last})
    where e.path like 'image/%'
    group by e.tenant, e.number
    having count(q.id) <> 1
"""


def compose_bound(end: str, tenant_type: str) -> str:
    text = f"(q.payload ->> '{end}')::jsonb"
    return f"({text} ->> 0)::{tenant_type}, ({text} ->> 1)::numeric"


@pytest.mark.by_day("text")
@pytest.mark.parametrize("tenant_type", ["text", 'text collate "C"', "date", "float8"])
def test_every_legacy_entry_is_in_exactly_one_waiting_range(tenant_type: str, table: EntryTable) -> None:
    """Whatever the batch sizes, what became of earlier batches, and what came later."""
    tenants = {"date": st.dates().map(str), "float8": st.floats().map(repr)}.get(
        tenant_type, st.text('aAbBäß-_ 0,."[\\', max_size=3)
    )
    bounds = {end: compose_bound(end, tenant_type) for end in ("first", "last")}

    @settings(max_examples=15)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        make_things(table, tenant_type)
        table.execute("truncate rowferry.migration, rowferry.batch_queue, rowferry.entry_failure cascade")
        some = data.draw(st.lists(tenants, min_size=1, max_size=5))
        ids = data.draw(st.lists(st.tuples(st.sampled_from(some), st.integers(-9, 99)), min_size=8, max_size=40))
        forms = data.draw(st.lists(st.sampled_from([FROM, FROM, TO]), min_size=40, max_size=40))
        insert = f"insert into public.things values (%s::{tenant_type}, %s, %s) on conflict do nothing"
        for part in (ids[::2], ids[1::2]):
            for number, (tenant, of_tenant) in enumerate(part):
                table.execute(insert, (tenant, of_tenant, f"{forms[number]}{number}"))
            table.enqueue(data.draw(st.integers(1, 7)))
            assert table.execute(NOT_IN_ONE_RANGE.format(**bounds)) == []
            ended = data.draw(st.lists(st.sampled_from([batch["id"] for batch in table.batches()] or [0])))
            move = (
                "update public.things as e set path = replace(path, 'image/', 'avatar/') from rowferry.batch_queue as q"
            )
            inside = "(e.tenant, e.number) >= ({first}) and (e.tenant, e.number) <= ({last})".format(**bounds)
            table.execute(f"{move} where q.id = any(%s) and {inside}", (ended,))
            table.execute(
                "update rowferry.batch_queue set status = 'DONE', migrated = entry_count where id = any(%s)", (ended,)
            )
        assert table.enqueue()[0].entries == table.enqueue()[0].entries == 0

    check()


@pytest.fixture
def things(migration: Migration) -> Migration:
    """24 rows of three tenants with an object each; the keys are those of `Migration.fill`."""
    make_things(migration)
    for number in range(1, 25):
        migration.legacy.put(f"{FROM}u{number}/me.png", f"body of {number}".encode())
    insert = "insert into public.things select 't, \"' || i % 3, i, 'image/u' || i || '/me.png' "
    migration.execute(insert + "from generate_series(1, 24) as i")
    return migration


def test_a_time_budget_puts_the_rest_back(things: Migration) -> None:
    things.enqueue(batch_size=24)
    take_one_turn(until=time.monotonic())
    first, rest = things.batches()
    assert (first["status"], rest["status"]) == ("DONE", "INIT")
    assert first["entry_count"] + rest["entry_count"] == 24
    assert json.loads(rest["payload"]["last"]) == ['t, "2', "23"]
    things.work()
    assert (things.counts(), left(things)) == ({"migrated": 24}, 0)
    assert things.enqueue()[0].entries == 0
    things.check_balance()


def test_missing_objects_and_conflicts_and_rewritten_rows_are_told_by_their_ids(things: Migration) -> None:
    things.legacy.delete(f"{FROM}u1/me.png")
    things.production.put(f"{TO}u2/me.png", b"another")
    assert things.migrate(24) == {"migrated": 22, "missing": 1, "conflict": 1}
    assert {each["entry_id"] for each in things.failures()} == {'["t, \\"1", "1"]', '["t, \\"2", "2"]'}
    things.check_balance()
    shown = things.run("errors", "--entries")
    assert '["t, \\"1", "1"]' in shown.stdout


def test_bounds_limit_a_pass_in_the_order_of_ids_by_the_first_columns_as_well(things: Migration) -> None:
    things.execute("update public.things set tenant = right(tenant, 1)")
    things.migrate()
    assert outcomes(verify(things, within=Within(None, "0,12", '["1", "7"]'))) == {"kept": 5 + 3}
    tenant = '["1"]'
    assert outcomes(revert(things, within=Within(None, tenant, tenant))) == {"migrated": 8}
    rows = things.execute("select distinct tenant from public.things where path like 'image/%'")
    assert rows == [{"tenant": "1"}]


ENTRIES = Entries("t", ("a", "b"), "path", "from/", "to/")


@pytest.mark.parametrize(
    ("text", "values"),
    [("7,12", ["7", "12"]), (" 7, 12", ["7", "12"]), ("7", ["7"]), ('["7", "a,b"]', ["7", "a,b"]), ("[7]", ["7"])],
)
def test_an_id_is_split_into_its_values(text: str, values: list[str]) -> None:
    assert split_id(text, ENTRIES, "--first") == values


@pytest.mark.parametrize("text", ["1,2,3", "[1, 2", '["1", null]', "[]", '["1", "2", "3"]', '[{"a": 1}]'])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--last is .*, and an id of t is a,b: give their values with commas"):
        split_id(text, ENTRIES, "--last")


def test_a_bound_of_another_type_ends_with_one_sentence(things: Migration) -> None:
    things.write_plan()
    things.migrate()
    bad_number = 'invalid input syntax for type numeric: "b"; correct --first or --last'
    for bound, words in (("a,b,c", "--first is 'a,b,c'"), ("a,b", bad_number)):
        refused = things.run_here("verify", "--yes", "--first", bound)
        assert refused.returncode == 2
        assert words in refused.stderr
        assert len(list_errors(refused)) == 1
