"""`rowferry enqueue` of a large table, half of it legacy, against `select count(*)` with the same condition.

The count is what a scan costs: PostgreSQL may share it out among parallel workers, which it never does for a statement
that writes. The enqueue scans once, numbers the legacy entries in the order of their ids, cuts, and writes the batches.
"""

import time
from functools import partial
from typing import Any

from psycopg import sql

from bench.environment import read_postgres_version, running_postgres
from bench.record import Figures, Record
from rowferry.db.connection import Connection, connect, fetch_one
from rowferry.db.entries import EntryQueries
from rowferry.plan import Entries, LegacySide, MigrationSettings, Plan, ProductionSide
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE

BATCH_SIZE = 100
ENTRIES = Entries("pictures", "id", "path", "image/", "avatar/")
LEGACY, PRODUCTION = LegacySide("legacy", "http://127.0.0.1:1"), ProductionSide("production")
PLAN = Plan(MigrationSettings("bench"), LEGACY, PRODUCTION, (ENTRIES,))
ROWS = """
create table pictures (id bigint primary key, path text not null);
insert into pictures
select i, case when i %% 2 = 0 then 'image/' else 'avatar/' end || lpad(i::text, 9, '0') || '.png'
from generate_series(1, %(rows)s) as i;
vacuum analyze pictures
"""
SPILLED = "select temp_bytes from pg_stat_database where datname = current_database()"


def run(record: Record) -> None:
    """Count and enqueue in turn: into an empty queue, and beside batches that wait."""
    rows = record.pick(10_000_000, short=2_000)
    record.settings |= {"rows": rows, "legacy": rows // 2, "batch_size": BATCH_SIZE, "work_mem": "4MB"}
    with running_postgres({"work_mem": "4MB", "max_wal_size": "4GB"}), connect("bench", autocommit=True) as connection:
        record.versions["postgresql"] = read_postgres_version()
        for statement in ROWS.split(";"):
            connection.execute(statement.encode(), {"rows": rows} if "%(" in statement else None)
        contestants = {
            "count": partial(count, connection, rows),
            "enqueue": partial(enqueue_all, connection, rows),
            "second pass": partial(enqueue_the_rest, connection, rows),
        }
        record.interleave(contestants, repetitions=record.pick(5, short=1))
        record.settings["temporary_bytes_per_legacy_entry"] = measure_spill(rows)
    what = f"enqueue of {rows:,} rows, half of them legacy, against count(*)"
    for contestant, words in (("enqueue", what), ("second pass", "the same beside half of the batches, which wait")):
        ratio = record.median(contestant, "seconds") / record.median("count", "seconds")
        record.expect(words, ratio, at_most=8 if contestant == "enqueue" else None, unit="x")


def count(connection: Connection, rows: int) -> Figures:
    """Count the legacy entries."""
    queries = EntryQueries.of(connection, ENTRIES)
    query = sql.SQL("select count(*) as legacy from pictures as e where ") + queries.has_form("legacy")
    began = time.monotonic()
    found = fetch_one(connection, query, queries.parameters())
    seconds = time.monotonic() - began
    assert found["legacy"] == rows // 2
    return {"seconds": seconds}


def enqueue_all(connection: Connection, rows: int) -> Figures:
    """Enqueue into an empty queue."""
    connection.execute("truncate rowferry.batch_queue cascade")
    return measure_pass(connection, rows // 2)


def enqueue_the_rest(connection: Connection, rows: int) -> Figures:
    """Take every other batch out of the queue, and enqueue what they held."""
    gone = connection.execute("delete from rowferry.batch_queue where id % 2 = 0").rowcount
    connection.execute("vacuum analyze rowferry.batch_queue")
    assert gone == rows // 2 // BATCH_SIZE // 2
    return measure_pass(connection, gone * BATCH_SIZE)


def measure_pass(connection: Connection, entries: int) -> Figures:
    began = time.monotonic()
    (enqueued,) = enqueue(connection, PLAN, EnqueueRequest(MIGRATE, BATCH_SIZE))
    seconds = time.monotonic() - began
    assert enqueued.entries == entries, f"{enqueued.entries} of {entries} entries were enqueued"
    return {"seconds": seconds, "entries_per_second": entries / seconds}


def measure_spill(rows: int) -> float:
    """Return the bytes of temporary files that an enqueue writes for each legacy entry: those of one sort."""
    before = read_spill()
    with connect("bench", autocommit=True) as other:
        enqueue_all(other, rows)
    return round((read_spill() - before) / (rows // 2), 1)


def read_spill() -> int:
    """Return the bytes of temporary files so far. A session tells them when it ends, if not before."""
    with connect("bench", autocommit=True) as connection:
        connection.execute("select pg_stat_force_next_flush()")
        return int(fetch_one(connection, sql.SQL(SPILLED))["temp_bytes"])


def draw(axis: Any, result: dict[str, Any]) -> None:
    """One bar for each statement, with all repetitions as points."""
    names = list(result["summary"])
    axis.barh(names, [result["summary"][name]["seconds"]["median"] for name in names], color="#3274d9")
    for run in result["repetitions"]:
        axis.plot(run["seconds"], run["contestant"], "k.", markersize=4)
    axis.invert_yaxis()
    axis.set_xlabel(f"seconds, {result['settings']['rows']:,} rows, half of them legacy", fontsize=8)
