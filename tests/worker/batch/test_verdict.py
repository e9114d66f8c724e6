"""The verdict on an attempt follows from its outcomes alone."""

from datetime import timedelta

import pytest

from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.errors import (
    AccessDenied,
    DatabaseBusy,
    ObjectNotFound,
    PlanError,
    RowBusy,
    RowferryError,
    RowRefused,
    ServerFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry_worker.batch.verdict import describe, judge, judge_failure

MIGRATED = EntryResult(Entry("1", "image/1"), Outcome.MIGRATED)
SETTLED = [EntryResult(Entry(outcome, "k"), outcome) for outcome in Outcome if outcome.settled]
CONFLICT = EntryResult(Entry("2", "image/2"), Outcome.CONFLICT, reason="different object")


def failed(error: RowferryError, outcome: Outcome = Outcome.FAILED) -> EntryResult:
    return EntryResult.from_error(Entry("3", "image/3"), error, outcome)


MISSING = failed(ObjectNotFound("NoSuchKey", "gone"), Outcome.MISSING)
BUSY_SERVER = failed(Throttled("SlowDown", ""))
AWAY = failed(Unreachable("AWS_IO_SOCKET_TIMEOUT", ""))
BROKEN = failed(ServerFault("InternalError", "oops"))
LATE = failed(TimedOut("DeadlinePassed", ""))
LOCKED = failed(RowBusy("locked"))
DENIED = failed(AccessDenied("AccessDenied", "no"))
REFUSED = failed(RowRefused("check"))


@pytest.mark.parametrize("results", [[], [MIGRATED], SETTLED])
def test_done_when_every_entry_is_settled(results: list[EntryResult]) -> None:
    assert judge(results, 1, 5) == Judgement(Verdict.DONE)


@pytest.mark.parametrize("result", [CONFLICT, MISSING, DENIED, REFUSED])
@pytest.mark.parametrize("others", [[], SETTLED])
def test_error_when_nothing_that_failed_can_pass(result: EntryResult, others: list[EntryResult]) -> None:
    judgement = judge([*others, result], 1, 5)
    assert judgement.verdict is Verdict.ERROR
    assert judgement.error == f"1 {result.outcome} ({result.reason})"


@pytest.mark.parametrize("result", [BROKEN, LATE, LOCKED])
@pytest.mark.parametrize("others", [[], SETTLED, [CONFLICT], [AWAY]])
def test_retry_while_attempts_are_left(result: EntryResult, others: list[EntryResult]) -> None:
    assert judge([*others, result], 4, 5).verdict is Verdict.RETRY
    assert judge([*others, result], 5, 5).verdict is Verdict.ERROR


@pytest.mark.parametrize("results", [[BUSY_SERVER], [AWAY], [AWAY, BUSY_SERVER, *SETTLED]])
@pytest.mark.parametrize("attempt", [1, 5, 99])
def test_released_when_only_a_busy_or_absent_server_is_in_the_way(results: list[EntryResult], attempt: int) -> None:
    """However often: it costs no attempt."""
    assert judge(results, attempt, 5).verdict is Verdict.RELEASED


@pytest.mark.parametrize("hopeless", [REFUSED, MISSING, DENIED, CONFLICT])
def test_what_failed_for_good_costs_the_others_no_attempt(hopeless: EntryResult) -> None:
    """A batch with one missing object is protected from outages as any other."""
    assert judge([BUSY_SERVER, hopeless], 5, 5).verdict is Verdict.RELEASED
    assert judge([BROKEN, hopeless], 5, 5).verdict is Verdict.ERROR


@pytest.mark.parametrize("attempt", range(1, 5))
def test_a_batch_rests_before_it_is_tried_again(attempt: int) -> None:
    rests = [judge([BROKEN], attempt, 99).wait for _ in range(50)]
    assert timedelta(0) <= min(rests) < max(rests) <= timedelta(seconds=2) * 2**attempt


def test_the_most_frequent_reasons_come_first_and_few_are_told() -> None:
    results = [MISSING, BROKEN, BROKEN, BROKEN, CONFLICT, CONFLICT, DENIED]
    assert describe(results) == "3 failed (InternalError); 2 conflict (different object); 1 missing (NoSuchKey)"


@pytest.mark.parametrize(
    ("error", "attempt", "verdict", "words"),
    [
        (PlanError("no such entries"), 1, Verdict.ERROR, "no such entries"),
        (DatabaseBusy("deadlock"), 1, Verdict.RETRY, "deadlock"),
        (DatabaseBusy("deadlock"), 5, Verdict.ERROR, "deadlock"),
        (Throttled("SlowDown", ""), 5, Verdict.RELEASED, "SlowDown"),
        (KeyError("path"), 1, Verdict.RETRY, "KeyError: 'path'"),
        (ZeroDivisionError(), 5, Verdict.ERROR, "ZeroDivisionError: ZeroDivisionError"),
    ],
)
def test_a_batch_that_failed_as_a_whole_is_judged_by_its_error_and_named_by_its_class(
    error: Exception, attempt: int, verdict: Verdict, words: str
) -> None:
    judgement = judge_failure(error, attempt, 5)
    assert (judgement.verdict, judgement.error) == (verdict, words)


def test_a_batch_that_met_an_outage_is_due_at_once_since_each_worker_waits_for_the_server() -> None:
    waits = {judge([AWAY], attempt, 5, is_away=True).wait for attempt in (1, 5, 99)}
    assert waits == {timedelta(0)}
