"""A queue in a given state, made by the functions that workers call, without any S3."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from rowferry.batch import Attempt, Batch, Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, connect
from rowferry.errors import RowferryError
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.verdict import judge_failure, write_failure, write_verdict
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring.heartbeat import WorkerReport
from support.entries.entry_table import EntryTable
from support.queue.held_batches import claim


def report_nothing() -> WorkerReport:
    """Return the report of a worker that holds no batch."""
    return WorkerReport(batches=0, in_flight_limit=4)


@dataclass
class Held:
    """A batch in the hand of a worker."""

    worker_id: str
    connection: Connection
    batch: Batch
    attempt: Attempt


class Actor:
    """What a worker does to the queue, at the test's command."""

    def __init__(self, table: EntryTable, worker_id: str) -> None:
        """`worker_id` is `host:pid:number`, as a real one has it."""
        self.table = table
        self.id = worker_id
        self.ledger = Ledger(worker_id)

    def send_heartbeat(self) -> None:
        """Record that the worker is alive."""
        host, pid, _ = self.id.split(":")
        self.ledger.call("heartbeat", self.id, host, int(pid), "0.1.0", 2, 64, ["migrate"])

    def claim(self) -> Held:
        """Claim the oldest batch and begin an attempt."""
        connection = connect(f"worker {self.id}")
        batch = claim(connection)
        return Held(self.id, connection, batch, begin_attempt(self.ledger, batch, self.id))

    def finish(self, held: Held, *, failures: Sequence[EntryResult] = (), verdict: Verdict | None = None) -> None:
        """Point the rows of the batch at their production keys, all but those that failed, and write the verdict."""
        payload, left_out = held.batch.payload, [result.entry.id for result in failures]
        moved = held.connection.execute(
            "update public.avatars set path = replace(path, 'image/', 'avatar/') where id between %s and %s "
            "and id <> all(%s::bigint[]) and path like 'image/%%' returning id::text, path",
            (payload["first"], payload["last"], left_out),
        ).fetchall()
        results = [EntryResult(Entry(row["id"], row["path"]), Outcome.MIGRATED, 100) for row in moved]
        judged = verdict or (Verdict.ERROR if any(not f.outcome.settled for f in failures) else Verdict.DONE)
        words = f"{len(failures)} {failures[0].outcome} ({failures[0].reason})" if failures else None
        judgement = Judgement(judged, timedelta(minutes=5), words)
        write_verdict(held.connection, held.batch, held.attempt, judgement, [*results, *failures])
        held.connection.commit()
        held.connection.close()

    def fail(self, held: Held, error: Exception) -> None:
        """Let the batch fail as a whole."""
        judgement = judge_failure(error, 1, held.batch.max_attempts)
        write_failure(held.connection, held.batch, held.attempt, judgement)
        held.connection.commit()
        held.connection.close()

    def die(self, held: Held) -> None:
        """Vanish with the batch in the hand: the server rolls back, the ledger knows nothing."""
        held.connection.close()
        self.close()

    def close(self) -> None:
        self.ledger.close()


@contextmanager
def acting(table: EntryTable, *worker_ids: str) -> Iterator[list[Actor]]:
    """Yield workers that live."""
    actors = [Actor(table, worker_id) for worker_id in worker_ids]
    try:
        for actor in actors:
            actor.send_heartbeat()
        yield actors
    finally:
        for actor in actors:
            actor.close()


def missing(number: int) -> EntryResult:
    words = "NoSuchKey: The specified key does not exist."
    return EntryResult(Entry(str(number), f"image/u{number}/me.png"), Outcome.MISSING, reason="NoSuchKey", error=words)


def denied(number: int) -> EntryResult:
    words = "AccessDenied: Access Denied"
    return EntryResult(
        Entry(str(number), f"image/u{number}/me.png"), Outcome.FAILED, reason="AccessDenied", error=words
    )


HOPELESS = RowferryError("The plan of migration avatars has no entries public.avatars.path.")
