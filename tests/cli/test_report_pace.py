"""The pace of a report is that of the work: a requeue neither repeats nor moves what was done before."""

from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry.reports.report import open_snapshot, read_tables
from rowferry_cli.report.gather import gather_facts
from rowferry_cli.report.verdict import list_tiles
from support.entries.migration import Migration

AN_HOUR = timedelta(hours=1)


def test_a_requeue_does_not_move_what_was_done_before(migration: Migration) -> None:
    """All entries of a requeued batch were drawn at its last end, and the hour until then counted as work."""
    migration.fill(3)
    migration.add_row(4, "image/lost.png")
    migration.enqueue()
    migration.work()
    for table in ("batch_queue", "batch_attempt"):
        migration.execute(
            f"update rowferry.{table} set started_at = started_at - interval '1 hour', "
            "finished_at = finished_at - interval '1 hour'"
        )
    migration.legacy.put("image/lost.png", b"found")
    migration.execute("select rowferry.requeue()")
    migration.work()
    with connect("report", autocommit=True) as connection, open_snapshot(connection):
        facts = gather_facts(connection, read_tables(connection, "avatars"))
    drawn = [{name: number for name, number in one.outcomes.items() if number} for one in facts.intervals]
    assert drawn == [{Outcome.MIGRATED: 3, Outcome.MISSING: 1}, {Outcome.MIGRATED: 1}]
    first, last = (one.began_at for one in facts.intervals)
    assert last - first > AN_HOUR / 2
    assert facts.worked is not None
    assert facts.worked < AN_HOUR / 2
    (took,) = [tile for tile in list_tiles(facts) if tile.label == "Took"]
    assert took.note.startswith("of work, within 1 h")


def test_what_no_attempt_tells_counts_at_the_end_of_its_batch(migration: Migration) -> None:
    """A batch that killed its workers fails as a whole; attempts may be pruned."""
    migration.fill(2)
    migration.enqueue()
    migration.work()
    migration.execute("update rowferry.batch_attempt set outcomes = null")
    with connect("report", autocommit=True) as connection, open_snapshot(connection):
        (drawn,) = gather_facts(connection, read_tables(connection, "avatars")).intervals
    assert {name: number for name, number in drawn.outcomes.items() if number} == {Outcome.MIGRATED: 2}
