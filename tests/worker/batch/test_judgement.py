"""Whose fault a failure is, by what the same operation does elsewhere: a table of cases."""

import pytest

from rowferry.errors import (
    AccessDenied,
    CredentialsUnavailable,
    ObjectNotFound,
    ObjectRejected,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry_worker.batch.sides.judgement import Answer, Answers, Suspicion, is_of_side, read_answer

WORKS, DENIED, DOWN, OTHER, MISSING = Answer.WORKS, Answer.DENIED, Answer.DOWN, Answer.OTHER, Answer.MISSING
FAILED = Suspicion(("production", "PutObject"), is_denied=False)
READ_DENIED = Suspicion(("legacy", "GetObject"), is_denied=True)
WRITE_DENIED = Suspicion(("production", "PutObject"), is_denied=True)


def of(nothing: Answer, known: Answer | None = None, *others: Answer) -> Answers:
    return Answers(nothing, known, others)


CASES = {
    FAILED: [
        (of(DOWN), False, True),
        (of(DOWN, WORKS), False, True),
        (of(OTHER, WORKS), True, False),
        (of(OTHER, DOWN), False, True),
        (of(OTHER, DOWN, WORKS), True, False),
        (of(OTHER, OTHER, WORKS, DOWN), True, False),
        (of(OTHER, None, DOWN, OTHER), False, True),
        (of(OTHER), False, False),
        (of(OTHER), True, True),
        (of(DENIED, DENIED), True, True),
    ],
    READ_DENIED: [  # a right to read is there where one object can be read
        (of(OTHER, WORKS), True, False),
        (of(DENIED, WORKS), True, False),
        (of(DENIED, None, DENIED, WORKS), True, False),
        (of(OTHER, DENIED), False, True),
        (of(DENIED), False, True),
        (of(DENIED, OTHER, DENIED), False, True),
        (of(OTHER, None, DENIED, DENIED), True, True),
        (of(OTHER, None, DENIED), False, False),
        (of(OTHER), False, False),
    ],
    WRITE_DENIED: [  # and one to write, where one key gets past
        (of(DENIED), True, True),
        (of(DENIED, DENIED), True, True),
        (of(DENIED, None, DENIED, DENIED), True, True),
        (of(OTHER), True, False),
        (of(WORKS, DENIED), True, False),
        (of(DENIED, OTHER), True, False),
        (of(DENIED, None, DENIED, WORKS), True, False),
    ],
}
"""By what is suspected: the answers, whether several objects in a row have failed, and whether the side is at fault."""


@pytest.mark.parametrize(
    ("suspicion", "answers", "in_a_row", "at_fault"),
    [(suspicion, *case) for suspicion, cases in CASES.items() for case in cases],
)
def test_a_failure_is_the_servers_where_it_fails_elsewhere(
    suspicion: Suspicion, answers: Answers, in_a_row: bool, at_fault: bool
) -> None:
    assert is_of_side(suspicion, answers, in_a_row=in_a_row) is at_fault


@pytest.mark.parametrize(
    ("answers", "suspicion", "is_open"),
    [
        (of(OTHER, WORKS), READ_DENIED, False),
        (of(OTHER, DENIED), READ_DENIED, False),
        (of(OTHER, OTHER), READ_DENIED, True),
        (of(OTHER, MISSING), READ_DENIED, True),
        (of(DENIED), READ_DENIED, True),
        (of(DOWN), READ_DENIED, False),
        (of(DENIED), WRITE_DENIED, True),
        (of(DENIED, DENIED), WRITE_DENIED, False),
        (of(OTHER), WRITE_DENIED, False),
    ],
)
def test_others_are_asked_for_where_nothing_is_known(answers: Answers, suspicion: Suspicion, is_open: bool) -> None:
    assert answers.are_open(suspicion) is is_open


def rejected(status: int, code: str) -> ObjectRejected:
    error = ObjectRejected(code, "")
    error.status = status
    return error


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("a response", WORKS),
        (AccessDenied("AccessDenied", ""), DENIED),
        (AccessDenied("HTTP 403", ""), DENIED),
        (CredentialsUnavailable("CredentialsUnavailable", ""), OTHER),
        (rejected(413, "HTTP 413"), DOWN),
        (rejected(400, "InvalidRange"), OTHER),
        (Unreachable("", ""), DOWN),
        (TimedOut("", ""), DOWN),
        (Throttled("SlowDown", ""), OTHER),
        (ObjectNotFound("NoSuchKey", ""), MISSING),
    ],
    ids=str,
)
def test_an_answer_says_whether_an_s3_server_is_there(result: object, answer: Answer) -> None:
    assert read_answer(result) is answer
