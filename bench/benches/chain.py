"""30 chained queues of items, 8 processes of 10 consumers: rowferry, pgqueuer with the same chain, and the naive way.

Each item has a name for each of 30 tables, of which there are few, so that all batches write the same rows. rowferry
and pgqueuer write one table a queue, in the order of its keys, and hand the batch on in the same transaction; naively,
each consumer writes all tables, rows as they come. The pace is that between the tenth and the ninetieth of a hundred
batches, so that no process's start counts. Beside that: workers that are killed, and one queue alone.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from bench.chains import (
    CONSUMERS,
    PROCESSES,
    Consumers,
    check_tables,
    count_surplus,
    cut,
    describe_claims,
    empty_tables,
    enqueue_chain,
    installed_example,
    list_tables,
    make_items,
    measure_pace,
    read_deadlocks,
)
from bench.environment import execute, read_postgres_version, running_postgres
from bench.record import Figures, Record
from bench.server_cpu import read_server_cpu
from bench.watch import read_cpu
from rowferry.db.connection import connect

Batches = Sequence[Sequence[dict[str, Any]]]

BATCH_SIZE, NAMES, HOT_NAMES = 50, 500, 20
BUSY = "--min-parallel=1000"
"""Every consumer claims; a worker by itself keeps as many batches as two cores need."""
KILL_EVERY_SECONDS = 3.0
MAX_KILLS = 10
NAIVE_SECONDS = 20
NOTE = (
    "A worker of rowferry claims as many batches as its limit asks for, here two a process, which pays where the "
    "database is on another host; `one batch a process` is `--max-batches=1`, and `all 80 busy` makes each of the 80 "
    "consumers hold one, which two cores pay for with switches. pgqueuer has ten connections a process."
)
CHAIN, SINGLE, ALL = "rowferry", "rowferry, one batch a process", "rowferry, all 80 busy"
KILLED = "rowferry, a process killed every 3 s"
ONE, HOT, BOUND = "one queue", "one queue of hot rows, 80 busy", "the same, max_in_hand 8"
PGQUEUER, NAIVE = "pgqueuer", "naive"

CLAIMED = "select count(*) from pg_locks where locktype = 'advisory' and classid = 1919907686"
ENDS = "select extract(epoch from finished_at)::float from rowferry.batch_queue where status = 'DONE'"
LEFT = "select count(*) from rowferry.batch_queue where status <> 'DONE'"
VERDICTS = """
select
    count(*) filter (where verdict in ('RETRY', 'ERROR')), count(*) filter (where verdict is null or verdict = 'LOST'),
    percentile_cont(0.95) within group (order by extract(epoch from finished_at - started_at))
from rowferry.batch_attempt
"""
LIVE = "select count(*) from rowferry.worker where stopped_at is null"


def run(record: Record) -> None:
    """Measure the contestants in turn."""
    count = record.pick(4_000, short=200, reduced=2_000)
    processes = record.pick(PROCESSES, short=2)
    settings = {"items": count, "batch_size": BATCH_SIZE, "names_a_table": NAMES, "processes": processes}
    record.settings |= settings | {"consumers_a_process": CONSUMERS}
    # A fleet takes a quarter of the connections at most.
    with installed_example(), running_postgres({"max_connections": "500"}) as postgres:
        record.versions["postgresql"] = read_postgres_version()
        tables, items = list_tables(), make_items(count, NAMES)
        batches, many, hot = cut(items, BATCH_SIZE), make_items(count * 10, NAMES), make_items(count * 5, HOT_NAMES)
        use = partial(measure, postgres.pid, processes)
        contestants: dict[str, Callable[[], Figures]] = {
            CHAIN: partial(use, batches, tables),
            SINGLE: partial(use, batches, tables, options=("--max-batches=1",)),
            PGQUEUER: partial(measure_pgqueuer, postgres.pid, processes, batches, record.versions),
            ALL: partial(use, batches, tables, options=(BUSY,)),
            ONE: partial(use, cut(many, BATCH_SIZE), tables[:1]),
            HOT: partial(use, cut(hot, BATCH_SIZE), tables[:1], options=(BUSY,)),
            BOUND: partial(use, cut(hot, BATCH_SIZE), tables[:1], options=(BUSY,), max_in_hand=8),
            KILLED: partial(use, batches, tables, kill_every=KILL_EVERY_SECONDS),
            NAIVE: partial(measure_naive, processes, batches, record.pick(NAIVE_SECONDS, short=4)),
        }
        if find_spec("pgqueuer") is None:
            record.absent[PGQUEUER] = "not installed: make bench installs it"
            del contestants[PGQUEUER]
        record.interleave(contestants, repetitions=record.pick(3, short=1, reduced=2))
    record.notes.append(NOTE)
    record.compare("batches/s against pgqueuer", "batches_per_second", CHAIN, PGQUEUER, at_least=1)
    record.compare("the same with one batch at a time a process", "batches_per_second", SINGLE, PGQUEUER)
    record.compare("the same with all 80 consumers busy", "batches_per_second", ALL, PGQUEUER)
    record.compare("p95 of a claim, 30 queues against one", "claim_p95_ms", CHAIN, ONE, at_most=2)
    for name in (CHAIN, SINGLE, ALL, KILLED, HOT, BOUND):
        record.expect(f"deadlocks, {name}", max(record.values(name, "deadlocks")), at_most=0)
    for name in (HOT, BOUND):
        record.expect(f"retries, {name}", max(record.values(name, "retries")), at_most=0)
    record.expect("most batches claimed, max_in_hand 8", max(record.values(BOUND, "most_claimed")), at_most=8)
    record.expect("deadlocks, naive", record.median(NAIVE, "deadlocks"))


def measure(
    postgres_pid: int,
    processes: int,
    batches: Batches,
    tables: Sequence[str],
    *,
    options: Sequence[str] = (),
    max_in_hand: int | None = None,
    kill_every: float | None = None,
) -> Figures:
    """Let workers work on a chain until it is done; AssertionError unless each table has each item once."""
    empty_tables()
    before = read_deadlocks()
    arguments = ["--processes=1", f"--max-batches={CONSUMERS}", "--log-format=json", *options]
    workers = Consumers([sys.executable, "-m", "bench.timed_claims", *arguments], processes)
    workers.start()
    try:
        assert workers.wait_until(lambda: execute(LIVE) == [(processes,)]), "the workers did not come about"
        began = read_server_cpu(postgres_pid), sum(read_cpu(process.pid) for process in workers.processes)
        enqueue_chain(batches, tables, max_in_hand=max_in_hand)
        claimed: list[int] = []
        is_done = partial(look, workers, claimed, kill_every, [time.monotonic()])
        assert workers.wait_until(is_done), "the chain did not come to its end"
        ended = read_server_cpu(postgres_pid), sum(read_cpu(process.pid) for process in workers.processes)
    finally:
        claims = [claim for said in workers.stop() for claim in said]
    ends = [end for (end,) in execute(ENDS)]
    ((retries, lost, p95),) = execute(VERDICTS)
    check_tables([item for batch in batches for item in batch], tables)
    figures = {**measure_pace(ends), **describe_claims(claims), "deadlocks": read_deadlocks() - before}
    figures |= {"retries": retries, "attempts_lost": lost, "attempt_p95_ms": 1000 * float(p95)}
    figures |= {"postgres_cpu_ms_per_batch": 1000 * (ended[0] - began[0]) / len(ends)}
    figures |= {"most_claimed": max(claimed)} if max_in_hand else {}
    return figures | ({} if kill_every else {"worker_cpu_ms_per_batch": 1000 * (ended[1] - began[1]) / len(ends)})


def look(workers: Consumers, claimed: list[int], kill_every: float | None, killed_at: list[float]) -> bool:
    """Note how many places are taken, kill a worker where it is time, and return whether no batch is left."""
    ((count,),) = execute(CLAIMED)
    claimed.append(count)
    if kill_every and len(killed_at) <= MAX_KILLS and time.monotonic() - killed_at[-1] >= kill_every:
        workers.kill_one(len(killed_at))
        killed_at.append(time.monotonic())
    return execute(LEFT) == [(0,)]


def measure_pgqueuer(postgres_pid: int, processes: int, batches: Batches, versions: dict[str, str]) -> Figures:
    """Let pgqueuer work on the chain until its queue is empty; items that it wrote twice are counted."""
    versions["pgqueuer"] = version("pgqueuer")
    empty_tables()
    before = read_deadlocks()
    asyncio.run(fill_pgqueuer([]))
    consumers = Consumers([sys.executable, "-m", "bench.baselines.pgqueuer_chain", str(CONSUMERS)], processes)
    consumers.start()
    try:
        listening = "select count(*) from pg_stat_activity where query ilike 'listen%'"
        assert consumers.wait_until(lambda: execute(listening)[0][0] >= processes), "pgqueuer did not come about"
        began = read_server_cpu(postgres_pid), sum(read_cpu(process.pid) for process in consumers.processes)
        asyncio.run(fill_pgqueuer(batches))
        assert consumers.wait_until(lambda: execute("select count(*) from pgqueuer") == [(0,)]), "pgqueuer did not end"
        ended = read_server_cpu(postgres_pid), sum(read_cpu(process.pid) for process in consumers.processes)
    finally:
        ends = [end for said in consumers.stop() for end in said]
    surplus = count_surplus(batches)
    return {
        **measure_pace(ends),
        "deadlocks": read_deadlocks() - before,
        "items_written_again": surplus,
        "postgres_cpu_ms_per_batch": 1000 * (ended[0] - began[0]) / len(ends),
        "worker_cpu_ms_per_batch": 1000 * (ended[1] - began[1]) / len(ends),
    }


async def fill_pgqueuer(batches: Batches) -> None:
    """Install pgqueuer's tables anew where there are no batches; else put them in its first queue."""
    import asyncpg  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    from pgqueuer.queries import Queries  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    try:
        queries = Queries.from_asyncpg_connection(connection)
        if batches:
            payloads: list[bytes | None] = [json.dumps(batch).encode() for batch in batches]
            await queries.enqueue([list_tables()[0]] * len(batches), payloads, [0] * len(batches))
            return
        if await queries.has_table("pgqueuer"):
            await queries.uninstall()
        await queries.install()
    finally:
        await connection.close()


def measure_naive(processes: int, batches: Batches, seconds: float) -> Figures:
    """Let consumers write all tables for so long; count their deadlocks."""
    from book_import.naive import DONE, fill_queue, run_naive  # noqa: PLC0415 - installed by then

    empty_tables()
    before = read_deadlocks()
    with connect("bench", autocommit=True) as connection:
        fill_queue(connection, batches)
    took = run_naive(os.environ["DATABASE_URL"], processes, CONSUMERS, seconds)
    ((done, _),) = execute(DONE)
    return {"seconds_in_all": took, "batches_done": done, "deadlocks": read_deadlocks() - before}
