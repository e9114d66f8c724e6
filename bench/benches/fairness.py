"""Two migrations beside each other: shares of the claims, places that are never exceeded, and a bucket that is missing.

The workers are real ones. Which batch was claimed when is read from the ledger, where each attempt is recorded before
its work begins.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import LiteralString

import psycopg
from psycopg import sql

from bench.environment import execute, fake_s3, read_postgres_version, running_postgres
from bench.migration import run_worker
from bench.record import Figures, Record
from rowferry.db.connection import connect
from rowferry.plan import Entries, LegacySide, MigrationSettings, Plan, ProductionSide
from rowferry_enqueue.enqueue import EnqueueRequest, enqueue
from rowferry_queues.migrate.spec import MIGRATE

LATENCY_MS = 70
BATCH_SIZE = 50
WITHIN = 0.05
PLACES, WORKERS = 3, 4
WORKER = (sys.executable, "-m", "rowferry_cli", "worker", "--processes=1", "--log-format=json")
KILL_EVERY_SECONDS = 1.5
"""A worker takes a second to begin."""
DEADLINE_SECONDS = 600.0

TABLE: tuple[LiteralString, ...] = (
    "create table {table} (id bigint generated always as identity primary key, path text not null)",
    "insert into {table} (path) select 'image/' || lpad(i::text, 9, '0') || '.png' from generate_series(1, {rows}) i",
    "analyze {table}",
)
CLAIMED = """
select m.name
from rowferry.batch_attempt as a
inner join rowferry.batch_queue as q on a.batch_id = q.id
inner join rowferry.migration as m on q.migration_id = m.id
order by a.started_at, a.id
"""
TAKEN = """
select coalesce(max(taken), 0)::int from (
    select count(*) as taken from pg_locks
    where locktype = 'advisory' and classid = 1919907686 and objsubid = 2 and granted group by objid::bigint / 1024
) as places
"""
LEFT = """
select count(*)::int from rowferry.batch_queue as q inner join rowferry.migration as m on q.migration_id = m.id
where q.status = 'INIT' and m.name = 'large'
"""
COUNTS = """
select sum(migrated + kept)::int from rowferry.batch_queue as q
inner join rowferry.migration as m on q.migration_id = m.id where m.name = 'large'
"""
LIMIT = """
insert into rowferry.queue (migration_id, name, max_in_hand) select id, 'migrate', {} from rowferry.migration
on conflict on constraint queue_name_key do update set max_in_hand = excluded.max_in_hand
"""
WEIGHT = """
insert into rowferry.queue (migration_id, name, weight) select id, 'migrate', {} from rowferry.migration
where name = 'small' on conflict on constraint queue_name_key do update set weight = excluded.weight
"""


def run(record: Record) -> None:
    """Measure each promise."""
    batches, kills = record.pick(300, short=30), record.pick(50, short=2, reduced=50)
    rounds = record.pick(5, short=1)
    record.settings |= {"latency_ms": LATENCY_MS, "batches": batches, "batches_later": 10, "batch_size": BATCH_SIZE}
    with running_postgres(), fake_s3(LATENCY_MS) as server:
        record.versions["postgresql"] = read_postgres_version()
        url = server.endpoint_url
        shares = {f"weight {weight}": partial(measure_share, url, batches, weight, rounds) for weight in (1, 3)}
        record.interleave(shares, repetitions=record.pick(3, short=1, reduced=1))
        for weight in (1, 3):
            name, part = f"weight {weight}", weight / (weight + 1)
            distance = record.median(name, "share_of_claims") - part
            record.expect(
                f"distance of the later migration's share from {part:.0%}, {name}", abs(distance), at_most=WITHIN
            )
        record.interleave({"places": partial(measure_places, url, batches, kills)}, repetitions=1)
        record.expect(
            f"batches claimed at once where max_in_hand is {PLACES}, {kills} workers killed",
            record.median("places", "most_in_hand"),
            at_most=PLACES,
        )
        beside = {
            "alone": partial(measure_good, url, batches, None),
            "beside": partial(measure_good, url, batches, "missing"),
        }
        record.interleave(beside, repetitions=record.pick(3, short=1, reduced=1))
        record.compare(
            "seconds of a migration beside one whose bucket is missing", "seconds", "beside", "alone", at_most=1.5
        )


def prepare(url: str, tables: dict[str, int], buckets: dict[str, str] | None = None) -> None:
    """Make the tables anew, with so many batches each, and enqueue them in this order."""
    execute("truncate rowferry.migration, rowferry.batch_queue, rowferry.batch_attempt, rowferry.worker cascade")
    for name, batches in tables.items():
        table = sql.Identifier(name)
        execute(sql.SQL("drop table if exists {}").format(table))
        for statement in TABLE:
            execute(sql.SQL(statement).format(table=table, rows=sql.Literal(batches * BATCH_SIZE)))
        plan = Plan(
            MigrationSettings(name),
            LegacySide("legacy", url),
            ProductionSide((buckets or {}).get(name, "production"), url),
            (Entries(name, "id", "path", "image/", f"{name}/"),),
        )
        with connect("bench", autocommit=True) as connection:
            enqueue(connection, plan, EnqueueRequest(MIGRATE, BATCH_SIZE))


def measure_share(url: str, batches: int, weight: int, rounds: int) -> Figures:
    """Return the share of the claims of ten batches that were enqueued after all others, while there were any."""
    small = claims = 0
    for _ in range(rounds):
        prepare(url, {"large": batches, "small": 10})
        execute(sql.SQL(WEIGHT).format(sql.Literal(weight)))
        run_worker("--max-batches=4")
        check_settled(batches)
        claimed = [name for (name,) in execute(CLAIMED)]
        last = max(place for place, name in enumerate(claimed, 1) if name == "small")
        small, claims = small + claimed[:last].count("small"), claims + last
    return {"share_of_claims": small / claims, "claims": claims}


@contextmanager
def workers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield workers that run until the end of the block."""
    with tempfile.TemporaryFile() as words:
        running = [start(words.fileno()) for _ in range(count)]
        try:
            yield running
        finally:
            for process in running:
                process.kill()
                process.wait()


def start(words: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(WORKER, env={**os.environ}, stdin=subprocess.DEVNULL, stdout=words, stderr=words)


def measure_places(url: str, batches: int, kills: int) -> Figures:
    """Kill workers again and again, and return the most batches that an auditor saw claimed at once."""
    prepare(url, {"large": batches})
    execute(sql.SQL(LIMIT).format(sql.Literal(PLACES)))
    dice, most, killed, polls, killed_at = random.Random(7), 0, 0, 0, 0.0
    deadline = time.monotonic() + DEADLINE_SECONDS
    with workers(WORKERS) as running, psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as auditor:
        while execute(LEFT)[0][0]:
            assert time.monotonic() < deadline, "the batches did not end"
            (taken,) = auditor.execute(TAKEN).fetchone() or (0,)
            most, polls = max(most, taken), polls + 1
            if killed < kills and time.monotonic() - killed_at > KILL_EVERY_SECONDS:
                victim, killed_at, killed = dice.randrange(WORKERS), time.monotonic(), killed + 1
                with suppress(ProcessLookupError):
                    running[victim].send_signal(signal.SIGKILL)
                running[victim].wait()
                running[victim] = start()
            if killed < kills and taken == 0:  # more to kill than there is work: the same batches once more
                execute("update rowferry.batch_queue set status = 'INIT' where status = 'DONE'")
    done = execute(COUNTS)[0][0]
    return {"most_in_hand": most, "killed": killed, "polls": polls, "entries_settled": done}


def measure_good(url: str, batches: int, bucket: str | None) -> Figures:
    """Return how long a migration takes, beside one whose production bucket is missing if that is named."""
    tables, buckets = {"large": batches}, dict[str, str]()
    if bucket is not None:
        tables, buckets = {"bad": batches, **tables}, {"bad": bucket}
    prepare(url, tables, buckets)
    began = time.monotonic()
    with workers(1):
        while execute(LEFT)[0][0]:
            assert time.monotonic() < began + DEADLINE_SECONDS, "the good migration did not end"
            time.sleep(0.05)
        seconds = time.monotonic() - began
    check_settled(batches)
    return {"seconds": seconds}


def check_settled(batches: int) -> None:
    """AssertionError unless each entry of the large migration has been migrated, or kept by a later round."""
    ((settled,),) = execute(COUNTS)
    assert settled == batches * BATCH_SIZE, f"{settled} entries of {batches * BATCH_SIZE} were settled"
