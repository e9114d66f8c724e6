"""Each figure of the tally follows each way to change the queue, shown by example."""

from typing import Any

from support.queue.lines import Lines
from support.queue.rows import change

MIGRATIONS = ("m", "other")
FIGURES = (
    *("batches", "batches_init", "batches_done", "batches_error", "entries", "migrated", "kept", "changed"),
    *("deleted", "missing", "conflict", "failed", "bytes"),
)
INSERT = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, status, entry_count, migrated, kept, changed, deleted, missing, conflict, failed,
    bytes, started_at, finished_at
)
select
    m.id, 'copy', jsonb_build_object('entries', %(label)s::text), %(status)s, 28, 1, 2, 3, 4, 5, 6, 7, 1000,
    '2026-01-01 10:00Z', case when %(status)s <> 'INIT' then '2026-01-01 11:00Z'::timestamptz end
from rowferry.migration as m, generate_series(1, %(count)s)
where m.name = %(migration)s
"""


def add(lines: Lines, status: str, count: int = 1, *, label: str = "public.a.key", migration: str = "m") -> None:
    chosen = {"status": status, "count": count, "label": label, "migration": migration}
    lines.session.execute(INSERT, chosen)


def tally(lines: Lines, label: str = "public.a.key", migration: str = "m") -> dict[str, Any]:
    """Return the figures of one table that are not zero."""
    rows = lines.session.execute(
        "select * from rowferry.table_progress where label = %s and migration = %s", (label, migration)
    ).fetchall()
    return {name: row[name] for row in rows for name in FIGURES if row[name]}


def times(lines: Lines) -> tuple[str, str]:
    (row,) = lines.session.execute(
        "select to_char(started_at at time zone 'UTC', 'HH24:MI') as began, "
        "to_char(finished_at at time zone 'UTC', 'HH24:MI') as ended from rowferry.table_progress"
    ).fetchall()
    return row["began"], row["ended"]


def test_work_began_with_the_first_attempt_and_ended_with_the_last_even_if_they_are_gone(lines: Lines) -> None:
    add(lines, "ERROR", 2)
    change(lines, "batch_queue", "started_at = '2026-01-01 09:00Z', finished_at = '2026-01-01 10:30Z' where id = 1")
    change(lines, "batch_queue", "started_at = '2026-01-01 12:00Z', finished_at = '2026-01-01 13:00Z' where id = 2")
    assert times(lines) == ("09:00", "13:00")
    change(lines, "batch_queue", "status = 'INIT'")
    assert times(lines) == ("09:00", "13:00")
    lines.session.execute("delete from rowferry.batch_queue where id = 1")
    assert times(lines) == ("09:00", "13:00")
    lines.session.execute("select rowferry.compact_tally(0)")
    assert times(lines) == ("09:00", "13:00"), "nor do they change as the tally is summed up"


def test_rows_of_the_tally_are_summed_up_from_the_one_that_is_told_on(lines: Lines) -> None:
    for _ in range(4):
        add(lines, "INIT")
    ids = "select id from rowferry.batch_tally order by id"
    first, second, third, _ = [row["id"] for row in lines.session.execute(ids)]
    lines.session.execute("select rowferry.compact_tally(%s)", (third,))
    kept = [row["id"] for row in lines.session.execute(ids)]
    assert kept[:2] == [first, second], "an old snapshot would keep what is deleted of them"
    assert len(kept) == 3
    assert tally(lines)["batches_init"] == 4
