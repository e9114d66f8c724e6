"""One batch, from its claim to its verdict: what is done under the SAVEPOINT, and what follows when it fails."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import psycopg

from rowferry.batch import EntryResult, Judgement, Outcome, Verdict, count_outcomes
from rowferry.db.connection import summarise, translate
from rowferry.db.timeouts import answered
from rowferry.errors import DatabaseUnavailable, MigrationFault, VerdictRefused
from rowferry_worker.batch.context import Released, Work
from rowferry_worker.batch.crash_policy import (
    GENTLE_FLIGHT,
    Treatment,
    choose_treatment,
    count_strikes,
    describe_strikes,
    put_rest_back,
    split_in_halves,
)
from rowferry_worker.batch.verdict import judge, judge_failure, write_processed
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects.scheduler import Flight
from rowferry_worker.queues import find_queue

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Processed:
    """A batch's verdict, committed, and the results behind it."""

    judgement: Judgement
    results: Sequence[EntryResult] = field(default_factory=tuple[EntryResult, ...])


def process_batch(work: Work) -> Processed:
    """Perform a claimed batch and commit its rows and its verdict together.

    Raises Released when the worker gives the batch up, MigrationFault when a side or the table is at fault,
    DatabaseUnavailable when the connection is lost: the caller then rolls back, and the batch is as it was found.
    """
    processed = _isolate(work)
    try:
        with answered(work.connection):
            work.connection.commit()
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"PostgreSQL did not commit the batch: {summarise(error)}.") from error
    _count(work, processed)
    return processed


def _isolate(work: Work) -> Processed:
    """Treat the batch and write its verdict under a SAVEPOINT; an error undoes both, and the claim stays ours.

    Should PostgreSQL refuse even the verdict on that, it is a loss, of which a batch may have but a few.
    """
    batch, attempt = work.batch, work.attempt
    try:
        with work.connection.transaction():
            processed = _treat(work)
            write_processed(work.connection, batch, attempt, processed.judgement, processed.results)
            return processed
    except (Released, DatabaseUnavailable, MigrationFault):
        raise
    except Exception as error:
        known = translate(error) if isinstance(error, psycopg.Error) else error
        if isinstance(known, DatabaseUnavailable):
            raise known from error
        _log.warning("the batch failed as a whole", extra={"batch": batch.id, "error": str(known)}, exc_info=error)
        processed = Processed(judge_failure(known, attempt.number, batch.max_attempts))
    try:
        write_processed(work.connection, batch, attempt, processed.judgement, ())
    except VerdictRefused as error:
        raise DatabaseUnavailable(str(error)) from error
    return processed


def _treat(work: Work) -> Processed:
    """Run the batch, or do what its crashes call for."""
    treatment = choose_treatment(work.batch, work.attempt)
    if treatment is not Treatment.RUN:
        strikes = work.batch.crashes + count_strikes(work.batch, work.attempt)
        fields = {"batch": work.batch.id, "strikes": strikes, "losses": work.attempt.losses}
        _log.warning("the batch has cost workers or connections before", extra={**fields, "treatment": treatment.value})
    match treatment:
        case Treatment.RUN:
            return _run(work)
        case Treatment.RUN_GENTLY:
            return _run(replace(work, flight=Flight(GENTLE_FLIGHT, within=work.flight)))
        case Treatment.HALVE:
            return _halve(work)
        case Treatment.GIVE_UP:
            return Processed(_judge_crashes(work))


def _run(work: Work) -> Processed:
    """Do what the queue does, and put back what the time did not suffice for."""
    results = find_queue(work.batch.queue_name).perform(work)
    if work.rest and not work.begun:
        return Processed(Judgement(Verdict.RELEASED, error="its time was over before any object's turn had come"))
    if work.rest:
        new_id = put_rest_back(work.connection, work.batch, work.rest, keep_last=work.begun[-1].id)
        fields = {"batch": work.batch.id, "rest": len(work.rest), "new_batch": new_id}
        _log.info("the batch is past its time budget; the rest goes back", extra=fields)
    return Processed(judge(results, work.attempt.number, work.batch.max_attempts), results)


def _halve(work: Work) -> Processed:
    """Put each half of the entries back as a batch of its own, so that the one that kills workers ends up alone."""
    entries = find_queue(work.batch.queue_name).read(work)
    crashes = work.batch.crashes + count_strikes(work.batch, work.attempt)
    if len(entries) == 1 and crashes >= work.batch.max_attempts:
        return Processed(_judge_crashes(work))  # The others of its batch were settled before: it is alone already.
    if len(entries) < 2:
        return _run(replace(work, flight=Flight(GENTLE_FLIGHT, within=work.flight)))
    halves = split_in_halves(work.connection, work.batch, entries, crashes)
    words = f"{describe_strikes(work.batch, work.attempt)}; it was halved into batches {halves[0]} and {halves[1]}"
    return Processed(Judgement(Verdict.DONE, error=words))


def _count(work: Work, processed: Processed) -> None:
    """Count what the attempt settled, and what it leaves failed for good."""
    migration, queue = work.route.plan.name, work.batch.queue_name
    counts = count_outcomes(processed.results)
    for outcome, count in counts.items():
        if outcome.settled or processed.judgement.verdict is Verdict.ERROR:
            metrics.entries.labels(migration, queue, str(outcome)).inc(count)
    if find_queue(queue).writes_objects:
        metrics.objects_copied.labels(migration, queue).inc(counts[Outcome.MIGRATED])
        metrics.object_bytes.labels(migration, queue).inc(sum(r.size_bytes for r in processed.results))


def _judge_crashes(work: Work) -> Judgement:
    """Return the verdict on a batch that has used its attempts up without anybody having lived to say so."""
    return Judgement(Verdict.ERROR, error=f"{describe_strikes(work.batch, work.attempt)}; it is not run again")
