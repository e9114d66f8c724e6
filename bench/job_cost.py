"""CPU of PostgreSQL for one job of a queue: rowferry, a plain queue, one like River's, pgqueuer.

    python -m bench.job_cost [--jobs 400] [--rounds 3]

Each takes one job and finishes it, again and again; rowferry takes batches of one entry and of 500. The plain queue
takes a job by an UPDATE over `for update skip locked`, and finishes it by another. The one like River's does the same
to a table with its columns and indexes, and finishes jobs by arrays, as its two statements do. pgqueuer's are its own.
The contestants run in turn, a few jobs each, so that what else the machine does meets them all.
"""

import argparse
import asyncio
import os
import statistics
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import psycopg

from bench.environment import execute, read_postgres_version, running_postgres
from bench.server_cpu import read_backend_cpu
from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import connect
from rowferry_lab.servers.postgres_programs import find_postgres_binaries
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_verdict
from rowferry_worker.ledger import Ledger

AT_ONCE = 10
WARM = 20
FILL = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count)
select {number}, 'migrate', jsonb_build_object('entries', 'pictures', 'first', i::text, 'last', i::text), {entries}
from generate_series(1, {jobs}) as i
"""
PLAIN = """
create table public.plain_job (
    id bigint generated always as identity primary key, state text not null default 'available', args jsonb not null,
    attempt smallint not null default 0, attempted_at timestamptz, finished_at timestamptz,
    scheduled_at timestamptz not null default now()
);
create index on public.plain_job (scheduled_at, id) where state = 'available'
"""
TAKE_PLAIN = """
with taken as (
    select id from public.plain_job where state = 'available' and scheduled_at <= now()
    order by scheduled_at, id limit 1 for update skip locked
)
update public.plain_job as j set state = 'running', attempt = j.attempt + 1, attempted_at = now()
from taken as t where j.id = t.id returning j.*
"""
END_PLAIN = "update public.plain_job set state = 'completed', finished_at = now() where id = %s and state = 'running'"
RIVER = """
create type public.job_state as enum ('available', 'cancelled', 'completed', 'discarded', 'pending', 'running');
create table public.like_river (
    id bigint generated always as identity primary key, state public.job_state not null default 'available',
    args jsonb not null, metadata jsonb not null default '{}', attempt smallint not null default 0,
    max_attempts smallint not null default 25, attempted_at timestamptz, attempted_by text [],
    created_at timestamptz not null default now(), finalized_at timestamptz, errors jsonb [],
    scheduled_at timestamptz not null default now(), priority smallint not null default 1,
    kind text not null default 'bench', queue text not null default 'default'
);
create index on public.like_river (kind);
create index on public.like_river (state, finalized_at) where finalized_at is not null;
create index on public.like_river (state, queue, priority, scheduled_at, id);
create index on public.like_river using gin (args);
create index on public.like_river using gin (metadata)
"""
TAKE_RIVER = """
with taken as (
    select * from public.like_river
    where state = 'available' and queue = %s and scheduled_at <= now()
    order by priority, scheduled_at, id limit 1 for update skip locked
)
update public.like_river as j
set state = 'running', attempt = j.attempt + 1, attempted_at = now(), attempted_by = array_append(j.attempted_by, %s)
from taken as t where j.id = t.id returning j.*
"""
END_RIVER = """
with given as (select unnest(%s::bigint []) as id, unnest(%s::timestamptz []) as at),
ended as (
    select j.id, g.at from public.like_river as j inner join given as g on j.id = g.id
    where j.state = 'running' for update of j
)
update public.like_river as j set state = 'completed', finalized_at = e.at from ended as e
where j.id = e.id returning j.*
"""

ADD = """;
insert into public.{table} (args) select jsonb_build_object('id', i) from generate_series(1, {jobs}) as i
"""
Parameters = tuple[tuple[str, ...], Callable[[int], tuple[Any, ...]]]
"""Of the statement that takes a job, and of that which finishes the job of an id."""
Work = tuple[list[int], Callable[[], None]]
"""The backends that work for a contestant, and what does one job."""


def run_rowferry(number: int, entries: int, jobs: int, until: ExitStack) -> Work:
    """Batches of so many entries, in a migration of their own."""
    execute(f"insert into rowferry.migration (name, plan) values ('bench {number}', '{{}}')")
    execute(FILL.format(number=number, entries=entries, jobs=jobs))
    connection, ledger = connect("bench", autocommit=True), Ledger(f"bench {number}")
    until.callback(connection.close)
    until.callback(ledger.close)
    ledger.flush()
    results = [EntryResult(Entry(str(place), f"image/{place}"), Outcome.MIGRATED) for place in range(entries)]
    ((ledger_pid,),) = execute(
        f"select pid from pg_stat_activity where application_name = 'rowferry ledger bench {number}'"
    )

    def work() -> None:
        batch = claim_batch(connection, ["migrate"], [f"bench {number}"])
        assert batch is not None
        attempt = begin_attempt(ledger, batch, ledger.worker_id)
        write_verdict(connection, batch, attempt, Judgement(Verdict.DONE), results)
        connection.commit()

    return [connection.info.backend_pid, int(ledger_pid)], work


def run_statements(table: str, statements: tuple[str, str, str], parameters: Parameters, until: ExitStack) -> Work:
    """A table of jobs, which one statement takes and another finishes."""
    make, take, end = statements
    for statement in make.split(";"):
        execute(statement)
    execute(f"vacuum analyze public.{table}")
    connection = until.enter_context(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
    connection.execute("set jit = off")

    def work() -> None:
        row = connection.execute(take.encode(), parameters[0]).fetchone()
        assert row is not None
        connection.execute(end.encode(), parameters[1](row[0]))

    return [connection.info.backend_pid], work


def run_pgqueuer(jobs: int, until: ExitStack) -> Work:
    """Its own statements, one job at a time, without its event loop's other work."""
    import asyncpg  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    from pgqueuer.ports.repository import EntrypointExecutionParameter  # noqa: PLC0415 # pyright: ignore
    from pgqueuer.queries import Queries  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    loop = asyncio.new_event_loop()
    until.callback(loop.close)
    connection = loop.run_until_complete(asyncpg.connect(os.environ["DATABASE_URL"]))
    until.callback(lambda: loop.run_until_complete(connection.close()))
    queries: Any = Queries.from_asyncpg_connection(connection)
    loop.run_until_complete(queries.install())
    loop.run_until_complete(queries.enqueue(["bench"] * jobs, [b"{}"] * jobs, [0] * jobs))
    execute("vacuum analyze pgqueuer")
    served: Any = {"bench": EntrypointExecutionParameter(0)}

    async def work() -> None:
        (job,) = await queries.dequeue(1, served, uuid.uuid4(), None, timedelta(seconds=60))
        await queries.log_jobs([(job, "successful", None)])

    return [connection.get_server_pid()], lambda: loop.run_until_complete(work())


def list_contestants(jobs: int, until: ExitStack) -> Iterator[tuple[str, Work]]:
    yield "rowferry, a batch of one", run_rowferry(1, 1, jobs, until)
    yield "rowferry, a batch of 500", run_rowferry(2, 500, jobs, until)
    plain = PLAIN + ADD.format(table="plain_job", jobs=jobs), TAKE_PLAIN, END_PLAIN
    yield "a plain queue", run_statements("plain_job", plain, ((), lambda job: (job,)), until)
    like = RIVER + ADD.format(table="like_river", jobs=jobs), TAKE_RIVER, END_RIVER
    given: Parameters = (("default", "bench"), lambda job: ([job], ["now"]))
    yield "a queue like River's", run_statements("like_river", like, given, until)
    if find_spec("pgqueuer") is not None:
        yield "pgqueuer", run_pgqueuer(jobs, until)


def main() -> None:
    """Print milliseconds of CPU a job, the median over turns of ten jobs, on each PostgreSQL here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=400, help="Jobs of each contestant a round (default: 400)")
    parser.add_argument("--rounds", type=int, default=3, help="Rounds of so many jobs (default: 3)")
    options = parser.parse_args()
    compare(options.jobs * options.rounds)


def compare(jobs: int) -> None:
    """Let each contestant do so many jobs, on each PostgreSQL here, and print the medians."""
    for binaries in find_postgres_binaries():
        for fsync in ("on", "off"):
            with running_postgres({"fsync": fsync}, binaries=binaries), ExitStack() as until:
                contestants = dict(list_contestants(jobs + WARM, until))
                used: dict[str, list[float]] = {name: [] for name in contestants}
                for turn in range(jobs // AT_ONCE):
                    for name, (pids, work) in contestants.items():
                        if not turn:
                            for _ in range(WARM):
                                work()
                        began = sum(map(read_backend_cpu, pids))
                        for _ in range(AT_ONCE):
                            work()
                        used[name].append(1000 * (sum(map(read_backend_cpu, pids)) - began) / AT_ONCE)
                print(f"PostgreSQL {read_postgres_version()}, fsync {fsync}, load {os.getloadavg()[0]:.1f}")
                plain = statistics.median(used["a plain queue"])
                for name, each in used.items():
                    print(f"  {name:<26} {statistics.median(each):6.3f} ms  {statistics.median(each) / plain:5.2f}x")


if __name__ == "__main__":
    main()
