"""Station 5 of 5: judge an attempt by its outcomes and write the verdict, in the transaction that updated the rows."""

from collections import Counter
from collections.abc import Sequence

import psycopg
from psycopg import errors

from rowferry.batch import Attempt, Batch, EntryResult, Judgement, Outcome, Verdict, count_outcomes
from rowferry.db.connection import Connection, call, summarise, text_fitter, translate
from rowferry.db.timeouts import answered
from rowferry.errors import RowferryError, VerdictRefused
from rowferry_worker.objects.retry import retry_delay


def judge(results: Sequence[EntryResult], attempt: int, max_attempts: int) -> Judgement:
    """Return the verdict on an attempt, the `attempt`-th that counts.

    DONE: every entry is settled. RELEASED: nothing stands in the way but a busy or absent server. RETRY: some
    failures may pass and attempts are left. ERROR: somebody has to look.
    """
    unsettled = [result for result in results if not result.outcome.settled]
    if not unsettled:
        return Judgement(Verdict.DONE)
    error = describe(unsettled)
    retryable = [result for result in unsettled if result.retryable]
    if retryable and not any(result.costs_attempt for result in unsettled):
        return Judgement(Verdict.RELEASED, retry_delay(attempt), error)
    if retryable and attempt < max_attempts:
        return Judgement(Verdict.RETRY, retry_delay(attempt), error)
    return Judgement(Verdict.ERROR, error=error)


def judge_failure(error: Exception, attempt: int, max_attempts: int) -> Judgement:
    """Return the verdict on an attempt that an error ended as a whole; errors without a name of ours may pass."""
    words = str(error) or type(error).__name__
    if isinstance(error, RowferryError):
        if error.retryable and not error.costs_attempt:
            return Judgement(Verdict.RELEASED, retry_delay(attempt), words)
        hopeless = not error.retryable
    else:
        words, hopeless = f"{type(error).__name__}: {words}", False
    if hopeless or attempt >= max_attempts:
        return Judgement(Verdict.ERROR, error=words)
    return Judgement(Verdict.RETRY, retry_delay(attempt), words)


def describe(unsettled: Sequence[EntryResult]) -> str:
    """Return the outcomes and reasons of what is not settled in one line, the most frequent first."""
    kinds = Counter((result.outcome, result.reason) for result in unsettled)
    return "; ".join(f"{count} {outcome} ({reason})" for (outcome, reason), count in kinds.most_common(3))


def write_processed(
    connection: Connection, batch: Batch, attempt: Attempt, judgement: Judgement, results: Sequence[EntryResult]
) -> None:
    """Record what an attempt came to; the caller commits.

    Raises VerdictRefused when the database does not take it, DatabaseBusy when it does not just now, UsageError when
    this role may not say it, and DatabaseUnavailable when the connection is lost.
    """
    try:
        with answered(connection):
            if results or judgement.verdict is Verdict.DONE:
                write_verdict(connection, batch, attempt, judgement, results)
            else:
                write_failure(connection, batch, attempt, judgement)
    except psycopg.Error as error:
        known = translate(error)
        if known.retryable or isinstance(error, (errors.InsufficientPrivilege, errors.UndefinedFunction)):
            raise known from error
        raise VerdictRefused(f"its verdict could not be written: {summarise(error)}") from error


def write_verdict(
    connection: Connection, batch: Batch, attempt: Attempt, judgement: Judgement, results: Sequence[EntryResult]
) -> None:
    """Record failures by entry, counts and verdict. The caller commits: rows and verdict appear together."""
    counts, fit = count_outcomes(results), text_fitter(connection)
    open_ends = [result for result in results if result.outcome not in {Outcome.MIGRATED, Outcome.KEPT}]
    call(
        connection,
        "finish_batch",
        batch.id,
        attempt.id,
        str(judgement.verdict),
        judgement.wait,
        fit(judgement.error),
        counts[Outcome.MIGRATED],
        counts[Outcome.KEPT],
        sum(result.size_bytes for result in results),
        [result.entry.id for result in results],
        [result.entry.id for result in open_ends],
        [result.entry.key for result in open_ends],
        [str(result.outcome) for result in open_ends],
        [fit(result.reason) for result in open_ends],
        [fit(result.error) for result in open_ends],
    )


def write_failure(connection: Connection, batch: Batch, attempt: Attempt, judgement: Judgement) -> None:
    """Record the verdict on an attempt that has no outcomes to show. The caller commits."""
    words = text_fitter(connection)(judgement.error)
    arguments = (batch.id, attempt.id, str(judgement.verdict), judgement.wait, words)
    call(connection, "fail_batch", *arguments)
