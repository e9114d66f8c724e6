"""Names that screens and commands to type quote are those that a plan may have, whoever writes them."""

import psycopg
import pytest

from support.entries.entry_table import EntryTable
from support.entries.migration import Migration

REFUSED = ["[/red]", "a\u202eb", "\x1b[2J", "a b", "", "-a", "a\n"]
ODD = "public.a[/red]\u202e\x1b[2J"

PLACES = [
    "insert into rowferry.migration (name, plan) values (%s, '{}')",
    "insert into rowferry.queue (migration_id, name) select id, %s from rowferry.migration",
    "update rowferry.queue set next = array[%s]",
    "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) "
    "select id, %s, '{}', 1 from rowferry.migration",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_name_that_no_plan_has_is_refused(table: EntryTable, place: str) -> None:
    table.add_legacy([1]).enqueue()
    table.execute("insert into rowferry.queue (migration_id, name) select id, 'other' from rowferry.migration")
    for name in REFUSED:
        if name == "" and "next" in place:
            continue  # of no queue
        with pytest.raises(psycopg.errors.CheckViolation):
            table.execute(place, (name,))


def test_odd_entries_of_a_batch_are_shown_as_text(migration: Migration) -> None:
    migration.given(2).write_plan()
    migration.execute(
        "update rowferry.batch_queue set payload = jsonb_set(payload, '{entries}', to_jsonb(%s::text)), "
        "status = 'ERROR', error = 'x', finished_at = now()",
        (ODD,),
    )
    migration.execute("insert into rowferry.entry_failure values (1, '1', 'k', 'failed', 'Odd', 'x', 1)")
    for command in (["report"], ["errors"], ["errors", "--entries"], ["status"], ["queues"]):
        done = migration.run_here(*command)
        assert done.returncode in {0, 1}, (command, done.stderr)
        assert not {"\u202e", "\x1b"} & {*done.stdout, *done.stderr}, command
        assert "Traceback" not in done.stderr, command
