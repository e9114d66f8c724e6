"""The times of the tally, and which of its rows are summed up."""

from support.queue.lines import Lines
from support.queue.rows import add, change

MIGRATIONS = ("m",)


def times(lines: Lines) -> tuple[str, str]:
    (row,) = lines.session.execute(
        "select to_char(started_at at time zone 'UTC', 'HH24:MI') as began, "
        "to_char(finished_at at time zone 'UTC', 'HH24:MI') as ended from rowferry.table_progress"
    ).fetchall()
    return row["began"], row["ended"]


def test_work_began_with_the_first_attempt_and_ended_with_the_last_even_if_they_are_gone(lines: Lines) -> None:
    for _ in range(2):
        add(lines, "copy", 1)
    for batch, began, ended in ((1, "09:00", "10:30"), (2, "12:00", "13:00")):
        at = f"started_at = '2026-01-01 {began}Z', finished_at = '2026-01-01 {ended}Z'"
        change(lines, "batch_queue", f"status = 'ERROR', failed = 1, {at} where id = {batch}")
    assert times(lines) == ("09:00", "13:00")
    change(lines, "batch_queue", "status = 'INIT'")
    assert times(lines) == ("09:00", "13:00")
    lines.session.execute("delete from rowferry.batch_queue where id = 1")
    assert times(lines) == ("09:00", "13:00")
    lines.session.execute("select rowferry.compact_tally(0)")
    assert times(lines) == ("09:00", "13:00"), "nor do they change as the tally is summed up"


def test_rows_of_the_tally_are_summed_up_from_the_one_that_is_told_on(lines: Lines) -> None:
    for _ in range(4):
        add(lines, "copy", 1)
    ids = "select id from rowferry.batch_tally order by id"
    first, second, third, _ = [row["id"] for row in lines.session.execute(ids)]
    lines.session.execute("select rowferry.compact_tally(%s)", (third,))
    kept = [row["id"] for row in lines.session.execute(ids)]
    assert kept[:2] == [first, second], "an old snapshot would keep what is deleted of them"
    assert len(kept) == 3
    assert lines.session.execute("select batches_init from rowferry.table_progress").fetchall() == [{"batches_init": 4}]
