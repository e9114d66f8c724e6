"""What a batch of one costs PostgreSQL, by what is said to it, and without what keeps a promise.

    python -m bench.job_parts [--jobs 400]

Beside rowferry as it is, databases that lack something, in which nothing else differs; and one whose functions do
nothing, which shows what the four calls cost by themselves. CPU of the backends, medians, five jobs of each in turn.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from bench.environment import execute, read_postgres_version, running_postgres
from bench.job_cost import ADD, END_PLAIN, FILL, PLAIN, TAKE_PLAIN, WARM, run_statements
from bench.server_cpu import read_backend_cpu
from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import connect
from rowferry.db.schema import initialise
from rowferry_lab.servers.postgres_programs import find_postgres_binaries
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.batch.verdict import write_verdict
from rowferry_worker.ledger import Ledger

T = TypeVar("T")

AT_ONCE = 5
PARTS = "claim", "attempt", "verdict", "COMMIT"
WITHOUT_CHECKS = """
do $$
declare v_check record;
begin
    for v_check in
        select c.conrelid::regclass as of, c.conname from pg_constraint as c
        where c.contype = 'c' and c.conrelid::regclass::text in ('rowferry.batch_queue', 'rowferry.batch_attempt')
    loop
        execute format('alter table %s drop constraint %I', v_check.of, v_check.conname);
    end loop;
end;
$$
"""
ROW_TRIGGERS = "requeue", "record_requeue", "reasons", "reasons_updated"
EMPTY = """
create or replace function rowferry.claim_batch(
    p_queues text [], p_migrations text [] default null, p_passed_over bigint [] default '{}'
)
returns table (
    id bigint, migration_id bigint, revision integer, queue_name text, payload jsonb, entry_count integer,
    max_attempts integer, requeues integer, crashes integer
)
language plpgsql security definer as $$ begin
return query values (1::bigint, 1::bigint, 1, '', '{}'::jsonb, 1, 1, 0, 0); end; $$;
create or replace function rowferry.begin_attempts(
    p_batch_ids bigint [], p_requeues integer [], p_worker_id text, p_reachable_for interval default null,
    p_ended text [] default '{}'
)
returns table (
    batch_id bigint, attempt_id bigint, number integer, crashes integer, losses integer, since_loss interval,
    unclear_for interval, silent_workers jsonb
)
language plpgsql security definer as $$ begin
return query values (1::bigint, 1::bigint, 1, 0, 0, null::interval, null::interval, '{}'::jsonb); end; $$;
create or replace function rowferry.finish_batch(
    p_batch_id bigint, p_attempt_id bigint, p_verdict text, p_wait interval, p_error text, p_migrated integer,
    p_kept integer, p_bytes bigint, p_read_ids text [], p_entry_ids text [], p_keys text [], p_outcomes text [],
    p_reasons text [], p_errors text []
)
returns void language plpgsql security definer as $$ begin end; $$
"""
LACKING = {
    "as it is": "select",
    "without the tally": "drop trigger batch_queue_tally_updated on rowferry.batch_queue",
    "without row triggers": ";".join(
        f"drop trigger batch_queue_{name} on rowferry.batch_queue" for name in ROW_TRIGGERS
    ),
    "without CHECKs": WITHOUT_CHECKS,
    "empty functions": EMPTY,
}


@contextmanager
def own_database(name: str) -> Iterator[None]:
    """Make a database, which DATABASE_URL leads to within the block."""
    before = os.environ["DATABASE_URL"]
    execute(f"create database {name}")
    os.environ["DATABASE_URL"] = before.rsplit("/", 1)[0] + f"/{name}"
    try:
        yield
    finally:
        os.environ["DATABASE_URL"] = before


class BatchOfOne:
    """A slot and a ledger in a database that lacks something; `used` has the CPU of each part, a job a row."""

    def __init__(self, number: int, lacking: str, jobs: int, until: ExitStack) -> None:
        with own_database(f"parts_{number}"):
            self.connection = until.enter_context(connect("bench", autocommit=True))
            initialise(self.connection)
            execute(lacking)
            execute("insert into rowferry.migration (name, plan) values ('bench', '{}')")
            execute(FILL.format(number=1, entries=1, jobs=jobs + WARM))
            execute("vacuum analyze")
            self.ledger = Ledger(f"bench {number}")
            self.ledger.flush()
            ((ledger_pid,),) = execute(
                f"select pid from pg_stat_activity where application_name = 'rowferry ledger bench {number}'"
            )
        until.callback(self.ledger.close)
        self.pids = self.connection.info.backend_pid, ledger_pid
        self.used: list[list[float]] = []

    def work(self) -> None:
        """Take a batch and finish it."""
        batch, claim = self._measure(lambda: claim_batch(self.connection, ["migrate"], ["bench"]))
        assert batch is not None
        attempt, begin = self._measure(lambda: begin_attempt(self.ledger, batch, self.ledger.worker_id))
        _, verdict = self._measure(lambda: self._finish(batch, attempt))
        _, commit = self._measure(self.connection.commit)
        self.used.append([claim, begin, verdict, commit])

    def _finish(self, batch: Batch, attempt: Attempt) -> None:
        results = [EntryResult(Entry("1", "image/1"), Outcome.MIGRATED)]
        write_verdict(self.connection, batch, attempt, Judgement(Verdict.DONE), results)

    def _measure(self, act: Callable[[], T]) -> tuple[T, float]:
        before = sum(map(read_backend_cpu, self.pids))
        done = act()
        time.sleep(0.0001)  # a backend that still runs is not counted to the end
        return done, sum(map(read_backend_cpu, self.pids)) - before


def main() -> None:
    """Print microseconds of CPU a job, by part, and the sum against a plain queue, on each PostgreSQL here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=400, help="Jobs of each contestant (default: 400)")
    compare(parser.parse_args().jobs)


def compare(jobs: int) -> None:
    """Let each contestant do so many jobs, on each PostgreSQL here, and print the medians."""
    for binaries in find_postgres_binaries():
        with running_postgres({"fsync": "off"}, binaries=binaries), ExitStack() as until:
            contestants = {
                name: BatchOfOne(number, lacking, jobs, until) for number, (name, lacking) in enumerate(LACKING.items())
            }
            statements = PLAIN + ADD.format(table="plain_job", jobs=jobs + WARM), TAKE_PLAIN, END_PLAIN
            (plain_pid,), take_and_end = run_statements("plain_job", statements, ((), lambda job: (job,)), until)
            plain: list[float] = []
            for turn in range((jobs + WARM) // AT_ONCE):
                for contestant in contestants.values():
                    for _ in range(AT_ONCE):
                        contestant.work()
                before = read_backend_cpu(plain_pid)
                for _ in range(AT_ONCE):
                    take_and_end()
                time.sleep(0.0001)
                plain.append((read_backend_cpu(plain_pid) - before) / AT_ONCE)
                if turn < WARM // AT_ONCE:
                    plain.clear()
            print(f"PostgreSQL {read_postgres_version()}, fsync off, load {os.getloadavg()[0]:.1f}")
            against = statistics.median(plain)
            for name, contestant in contestants.items():
                used = contestant.used[WARM:]
                parts = [statistics.median(each) for each in zip(*used, strict=True)]
                whole = statistics.median([sum(job) for job in used])
                said = "  ".join(f"{part} {1e6 * value:4.0f}" for part, value in zip(PARTS, parts, strict=True))
                print(f"  {name:<21} {said}  in all {1e6 * whole:5.0f} µs  {whole / against:5.2f}x")
            print(f"  {'a plain queue':<21} {1e6 * against:5.0f} µs")


if __name__ == "__main__":
    main()
