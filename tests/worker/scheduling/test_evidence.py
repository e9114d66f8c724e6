"""What fails for one object is the object's; what fails for all, with no success between them, is the server's."""

import pytest

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, ObjectError, ObjectNotFound, ObjectRejected, ServerFault
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.evidence import Evidence, Operation, is_suspect

GET: Operation = ("legacy", "GetObject")
PUT: Operation = ("production", "PutObject")
COPIED, KEPT = CopyResult(Outcome.MIGRATED), CopyResult(Outcome.KEPT)


def failure(operation: Operation = PUT, code: str = "InternalError", status: int = 500) -> ServerFault:
    error = ServerFault(code, "")
    error.status = status
    error.side, error.operation = operation
    return error


def denial() -> AccessDenied:
    error = AccessDenied("AccessDenied", "")
    error.side, error.operation = GET
    return error


def list_marked(*results: ObjectError | CopyResult, is_first: bool = True) -> list[bool]:
    """Return which of the results, each of another object, were held against the server."""
    evidence = Evidence()
    return [evidence.note(f"k{number}", result, is_first=is_first) for number, result in enumerate(results)]


IN_A_ROW: dict[str, tuple[list[ObjectError | CopyResult], list[bool]]] = {
    "alike": ([failure() for _ in range(4)], [False, False, True, True]),
    "success between": ([failure(), failure(), COPIED, failure(), failure()], [False] * 5),
    "read between": ([failure(GET), failure(GET), KEPT, failure(GET)], [False] * 4),
    "kept is no write": ([failure(), failure(), KEPT, failure()], [False, False, False, True]),
    "other operations": ([failure(GET), failure(PUT), failure(GET), failure(PUT)], [False] * 4),
    "upload": ([failure(code="NoSuchUpload", status=404) for _ in range(3)], [False] * 3),
    "rewritten": ([failure(code="ObjectChanged", status=0) for _ in range(3)], [False] * 3),
    "404": ([ObjectNotFound("NoSuchKey", "") for _ in range(3)], [False] * 3),
}
"""Results, and which of them are held against the server."""


@pytest.mark.parametrize("name", IN_A_ROW)
def test_several_failures_in_a_row_are_the_servers(name: str) -> None:
    results, marked = IN_A_ROW[name]
    assert list_marked(*results) == marked


def test_objects_that_have_failed_before_tell_nothing_of_the_server_and_one_again_and_again_is_one() -> None:
    assert list_marked(*[failure() for _ in range(5)], is_first=False) == [False] * 5
    evidence = Evidence()
    assert not any(evidence.note("the same", failure(), is_first=True) for _ in range(5))


def test_denials_in_a_row_are_told_until_one_object_gets_past() -> None:
    evidence = Evidence()
    for number in range(3):
        assert not evidence.is_in_a_row(GET)
        evidence.note(f"k{number}", denial(), is_first=True)
    assert evidence.is_in_a_row(GET)
    assert not evidence.is_in_a_row(PUT)
    evidence.note("k9", COPIED, is_first=True, target="p9")
    assert not evidence.is_in_a_row(GET)
    assert (evidence.readable, evidence.written) == ("k9", "p9")


def test_an_operation_that_works_elsewhere_ends_no_batch_early_for_a_while() -> None:
    now = 100.0
    evidence = Evidence(lambda: now)
    evidence.note_well(PUT)
    marked: list[bool] = []
    for number in range(4):
        marked.append(evidence.note(f"k{number}", failure(), is_first=True))
        now += 30
    assert marked == [False, False, False, True]


def test_how_long_all_has_failed_is_counted_from_the_first_failure_on() -> None:
    now = 100.0
    evidence = Evidence(lambda: now)
    for number in range(3):
        evidence.note(f"k{number}", failure(), is_first=True)
        now += 60
    assert evidence.failing_for(PUT).total_seconds() == 180
    assert evidence.failing_for(GET).total_seconds() == 0
    evidence.note("k3", COPIED, is_first=True)
    assert evidence.failing_for(PUT).total_seconds() == 0


def refusal(code: str, status: int) -> ObjectRejected:
    error = ObjectRejected(code, "")
    error.status = status
    return error


@pytest.mark.parametrize(
    ("error", "suspect"),
    [
        (refusal("HTTP 302", 302), True),
        (refusal("HTTP 400", 400), True),
        (refusal("InvalidArgument", 400), False),
        (refusal("LegacyIsReadOnly", 0), False),
        (failure(code="NoETag", status=0), True),
        (failure(code="TagsLost", status=0), False),
    ],
    ids=str,
)
def test_a_refusal_without_s3s_code_may_be_a_proxys(error: ObjectError, *, suspect: bool) -> None:
    assert is_suspect(error) is suspect
