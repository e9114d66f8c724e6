"""One batch, from its claim to its verdict: what is done under the SAVEPOINT, and what follows when it fails."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from rowferry.batch import Attempt, Batch, EntryResult, Judgement, Outcome, Verdict, count_outcomes
from rowferry.database import Connection, translate
from rowferry.errors import DatabaseUnavailable
from rowferry_worker import metrics
from rowferry_worker.queues import find_queue
from rowferry_worker.verdict import judge, judge_failure, write_failure, write_verdict
from rowferry_worker.work import Released, Work

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Processed:
    """A batch's verdict, committed, and the results behind it."""

    judgement: Judgement
    results: Sequence[EntryResult] = field(default_factory=tuple[EntryResult, ...])


def process_batch(work: Work) -> Processed:
    """Perform a claimed batch and commit its rows and its verdict together.

    Raises Released when the worker gives the batch up, DatabaseUnavailable when the connection is lost: the caller
    then rolls back, and the batch is as it was found.
    """
    batch, attempt, connection = work.batch, work.attempt, work.connection
    used_up = attempt.number > batch.max_attempts
    processed = Processed(_judge_crashes(attempt)) if used_up else _perform(work)
    _write(connection, batch, attempt, processed)
    connection.commit()
    _count(work, processed)
    return processed


def _perform(work: Work) -> Processed:
    """Do what the queue does under a SAVEPOINT; an error undoes that much, and the claim stays ours to judge."""
    batch, attempt = work.batch, work.attempt
    try:
        with work.connection.transaction():
            results = find_queue(batch.queue_name)(work)
    except (Released, DatabaseUnavailable):
        raise
    except Exception as error:
        known = translate(error) if isinstance(error, psycopg.Error) else error
        if isinstance(known, DatabaseUnavailable):
            raise known from error
        _log.warning("the batch failed as a whole", extra={"batch": batch.id, "error": str(known)}, exc_info=error)
        return Processed(judge_failure(known, attempt.number, batch.max_attempts))
    return Processed(judge(results, attempt.number, batch.max_attempts), results)


def _write(connection: Connection, batch: Batch, attempt: Attempt, processed: Processed) -> None:
    if processed.results or processed.judgement.verdict is Verdict.DONE:
        write_verdict(connection, batch, attempt, processed.judgement, processed.results)
    else:
        write_failure(connection, batch, attempt, processed.judgement)


def _count(work: Work, processed: Processed) -> None:
    """Count what the attempt settled, and what it leaves failed for good."""
    migration = work.route.plan.name
    counts = count_outcomes(processed.results)
    for outcome, count in counts.items():
        if outcome.settled or processed.judgement.verdict is Verdict.ERROR:
            metrics.entries.labels(migration, str(outcome)).inc(count)
    metrics.objects_copied.labels(migration).inc(counts[Outcome.MIGRATED])
    metrics.object_bytes.labels(migration).inc(sum(r.size_bytes for r in processed.results))


def _judge_crashes(attempt: Attempt) -> Judgement:
    """Return the verdict on a batch that has used its attempts up without anybody having lived to say so."""
    words = f"the worker died {attempt.crashes} times while it held this batch; it is not run again"
    return Judgement(Verdict.ERROR, error=words)
