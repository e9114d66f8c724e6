"""What the answers of the servers teach: the limit of objects in flight, and the metrics of requests."""

from functools import cache

from prometheus_client import Counter, Histogram

from rowferry.errors import ANSWER_TOO_LONG, ObjectError, ObjectNotFound, PreconditionFailed, Throttled
from rowferry.plan import SideName
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects.concurrency import Limit
from rowferry_worker.objects.multipart import READ_BYTES


def observe_try(
    limit: Limit, request: Request, answer: Answer, seconds: float, *, again: bool, show_limit: bool = True
) -> None:
    """Take one try of one request in; `show_limit`: the limit is the one that the process shows as its own."""
    throttled = isinstance(answer.error, Throttled)
    ended = limit.note(request.operation, seconds, throttled=throttled, held=measure_bodies(request, answer))
    if ended and show_limit:
        metrics.objects_in_flight_limit.set(limit.value)
    _requests(request.side, request.operation, name_result(answer.error)).inc()
    _request_seconds(request.side).observe(seconds)
    if throttled:
        metrics.throttled.labels(request.side).inc()
    if again:
        metrics.request_retries.labels(request.side).inc()


def measure_bodies(request: Request, answer: Answer) -> int | None:
    """Return the bytes of body that a request and its answer had in memory; None where it came to nothing."""
    if answer.error is None:
        return max(len(answer.body), len(request.body))
    return READ_BYTES if answer.error.code == ANSWER_TOO_LONG else None


def name_result(error: ObjectError | None) -> str:
    """Return the word that a result is counted under: `ok`, what a condition or a missing object says, or the error."""
    if error is None:
        return "ok"
    if isinstance(error, ObjectNotFound):
        return "not_found"
    if isinstance(error, PreconditionFailed):
        return "precondition_failed"
    return type(error).__name__.lower()


# Every request passes here, and looking a child up by its labels costs more than counting it.


@cache
def _requests(side: SideName, operation: str, result: str) -> Counter:
    return metrics.requests.labels(side, operation, result)


@cache
def _request_seconds(side: SideName) -> Histogram:
    return metrics.request_seconds.labels(side)
