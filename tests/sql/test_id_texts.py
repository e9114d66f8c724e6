"""An id has one text, whatever the session's role or database has set: what an enqueuer writes, every worker reads."""

import pytest
from psycopg import sql

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.db.timeouts import PGBOUNCER
from rowferry_worker.batch.rows import Move, Outcome, update_rows
from rowferry_worker.batch.sources.table import read_entries
from support.entries.entry_table import TO, EntryTable, trusted

ODD_SETTINGS = (
    "-c datestyle=German,DMY -c timezone=Asia/Kolkata -c intervalstyle=sql_standard -c extra_float_digits=-10 "
    "-c bytea_output=escape"
)
IDS = {
    "date": "'2026-03-01'::date + i",
    "timestamp": "'2026-03-01 10:00'::timestamp + i * interval '25 hours'",
    "timestamptz": "'2026-03-01 10:00+00'::timestamptz + i * interval '25 hours'",
    "float8": "1 + i / 3e15",
    "real": "(1 + i / 3e6)::real",
    "interval": "i * interval '-1 day 3 hours 7.5 seconds'",
    "money": "(i * 1000)::text::money",
}
ROWS = 40


@pytest.mark.parametrize("pooled", ["", "1"], ids=["", "as for pgbouncer"])
def test_ids_survive_other_settings_of_the_enqueuer(
    pooled: str, table: EntryTable, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setenv(PGBOUNCER, pooled)
    for id_type, ids in IDS.items():
        table.execute("truncate rowferry.batch_queue cascade")
        table.execute("drop table public.avatars")
        table.make_table(id_type)
        fill = "insert into public.avatars select {ids}, 'image/' || i from generate_series(1, %s) as i"
        table.execute(sql.SQL(fill).format(ids=trusted(ids)), (ROWS,))
        with subtests.test(id_type):
            with monkeypatch.context() as patch:
                patch.setenv("PGOPTIONS", ODD_SETTINGS)
                table.enqueue(7)
            assert move_all(table) == ROWS
            assert all((key or "").startswith(TO) for key in table.rows().values())


def move_all(table: EntryTable) -> int:
    """Read each range and point its rows at their production keys, as a worker does; return how many it moved."""
    moved = 0
    with connect("worker test") as connection:
        queries = EntryQueries.of(connection, table.read_plan().entries[0])
        for first, last in table.ranges():
            entries = read_entries(connection, queries, first, last)
            moves = [Move(entry, TO + entry.key, Outcome.MIGRATED, 1) for entry in entries]
            moved += sum(done.outcome is Outcome.MIGRATED for done in update_rows(connection, queries, moves))
        connection.commit()
    return moved


def test_settings_that_triggers_may_rely_on_stay_as_they_are(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of days and months, and the time zone, in which a trigger writes a local time."""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("PGOPTIONS", ODD_SETTINGS)
    with connect("test") as connection:
        query = "select current_setting('datestyle') as datestyle, current_setting('timezone') as timezone"
        assert connection.execute(query).fetchone() == {"datestyle": "ISO, DMY", "timezone": "Asia/Kolkata"}
