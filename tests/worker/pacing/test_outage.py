"""Failures with no success between them are an outage, after which the limit begins low and rises quickly."""

from rowferry_worker.pacing.in_flight import RAMP, SILENT_SECONDS, START, InFlightLimit

KIND = ("PutObject", 0)


def used_limit() -> InFlightLimit:
    """Return a limit that has seen a success at the time 0."""
    limit = InFlightLimit(1, 1000)
    limit.note(KIND, 0.1, START, 0.0)
    return limit


def test_failures_after_a_silence_lower_the_limit_once() -> None:
    limit = used_limit()
    assert not limit.note_failure(SILENT_SECONDS / 2)
    assert limit.value == START
    assert limit.note_failure(SILENT_SECONDS + 1)
    assert limit.value == START // RAMP
    assert not limit.note_failure(SILENT_SECONDS + 2)
    assert limit.value == START // RAMP


def test_failures_before_any_success_say_nothing_of_an_outage() -> None:
    """The server may never have been there: nothing is known that could be lost."""
    limit = InFlightLimit(1, 1000)
    assert not limit.note_failure(100.0)
    assert limit.value == START


def test_answers_after_an_outage_double_the_limit_until_it_is_what_it_was() -> None:
    limit = used_limit()
    limit.note_failure(SILENT_SECONDS + 1)
    assert limit.value == 2
    assert [limit.value for number in range(2 * START) if limit.note_answer(10.0 + number)] == [4, 8, 16]
