"""Step 5 of 5: judge an attempt by its outcomes and write the verdict, in the transaction that updated the rows."""

import codecs
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

import psycopg
from psycopg import errors

from rowferry.batch import Attempt, Batch, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, call, summarise, translate
from rowferry.errors import RowferryError, VerdictRefused
from rowferry.s3.retry import retry_delay


def judge(results: Sequence[EntryResult], attempt: int, max_attempts: int, *, is_away: bool = False) -> Judgement:
    """Return the verdict on an attempt, the `attempt`-th that counts.

    DONE: every entry is settled. RELEASED: of what may pass, only a busy or unavailable server stands in the way; what
    will not pass is judged with the rest, later. RETRY: some failures may pass and attempts are left. ERROR: a person
    must decide. `is_away`: a server is away; a released batch is then
    due at once, since each worker waits for the server before it claims another.
    """
    unsettled = [result for result in results if not result.outcome.settled]
    if not unsettled:
        return Judgement(Verdict.DONE)
    error = describe(unsettled)
    retryable = [result for result in unsettled if result.retryable]
    if retryable and not any(result.costs_attempt for result in retryable):
        return Judgement(Verdict.RELEASED, timedelta(0) if is_away else retry_delay(attempt), error)
    if retryable and attempt < max_attempts:
        return Judgement(Verdict.RETRY, retry_delay(attempt), error)
    return Judgement(Verdict.ERROR, error=error)


def judge_failure(error: Exception, attempt: int, max_attempts: int) -> Judgement:
    """Return the verdict on an attempt that an error ended as a whole; an error that is not ours may pass."""
    text = str(error) or type(error).__name__
    if isinstance(error, RowferryError):
        if error.retryable and not error.costs_attempt:
            return Judgement(Verdict.RELEASED, retry_delay(attempt), text)
        is_final = not error.retryable
    else:
        text, is_final = f"{type(error).__name__}: {text}", False
    if is_final or attempt >= max_attempts:
        return Judgement(Verdict.ERROR, error=text)
    return Judgement(Verdict.RETRY, retry_delay(attempt), text)


def describe(unsettled: Sequence[EntryResult]) -> str:
    """Return the three most frequent outcomes and reasons of the unsettled entries in one line."""
    kinds = Counter((result.outcome, result.reason) for result in unsettled)
    return "; ".join(f"{count} {outcome} ({reason})" for (outcome, reason), count in kinds.most_common(3))


def write_result(
    connection: Connection, batch: Batch, attempt: Attempt, judgement: Judgement, results: Sequence[EntryResult]
) -> None:
    """Write the verdict; the caller commits.

    Raises VerdictRefused when the database refuses it, DatabaseBusy when it refuses it for now, UsageError when this
    role may not write it, DatabaseUnavailable when the connection is lost.
    """
    try:
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
    counts = Counter([result.outcome for result in results])
    size_bytes = sum([result.size_bytes for result in results])
    open_ends = [result for result in results if result.outcome not in {Outcome.MIGRATED, Outcome.KEPT}]
    fit = _text_fitter(connection)
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
        size_bytes,
        [result.entry.id for result in results],
        [result.entry.id for result in open_ends],
        [result.entry.key for result in open_ends],
        [str(result.outcome) for result in open_ends],
        [fit(result.reason) for result in open_ends],
        [fit(result.error) for result in open_ends],
    )


def write_failure(connection: Connection, batch: Batch, attempt: Attempt, judgement: Judgement) -> None:
    """Record the verdict on an attempt without outcomes. The caller commits."""
    error = _text_fitter(connection)(judgement.error)
    call(connection, "fail_batch", batch.id, attempt.id, str(judgement.verdict), judgement.wait, error)


def _text_fitter(connection: Connection) -> Callable[[str | None], str | None]:
    """Return a function that replaces the characters that the database's encoding cannot store, and NUL."""
    encoding = (connection.info.parameter_status("server_encoding") or "UTF8").upper().replace("WIN", "CP")
    try:
        codec = codecs.lookup("UTF-8" if encoding in {"UTF8", "SQL_ASCII"} else encoding).name
    except LookupError:
        codec = "ascii"
    return lambda text: None if text is None else text.replace("\0", "?").encode(codec, "replace").decode(codec)
