"""What is told of each request: the metrics, and the pace."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rowferry.errors import (
    ObjectError,
    ObjectNotFound,
    PreconditionFailed,
    Throttled,
)
from rowferry.plan import SideName
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.monitoring import metrics
from rowferry_worker.pacing.pacer import Pacer

OK = "ok"
"""The result of a request that has succeeded, as metrics name it."""
FLUSH_SECONDS = 0.1
"""How long a success may be counted before the metrics know of it."""


class TransferTally:
    """Keeps the seconds of requests and objects until the metrics take in many at once. Event-loop thread only."""

    def __init__(self) -> None:
        """Begin with none."""
        self._requests = defaultdict[tuple[SideName, str, str], list[float]](list)
        self._objects = defaultdict[tuple[str, str], list[float]](list)
        self.in_flight = 0
        """Objects of the process that are being copied."""
        self._flush_at = 0.0

    def note(self, side: SideName, operation: str, result: str, seconds: Sequence[float], now: float) -> None:
        """Count tries of requests; the metrics know of them within FLUSH_SECONDS if others follow, or at `flush`."""
        self._requests[side, operation, result] += seconds
        if result != OK or now >= self._flush_at:
            self._flush_at = now + FLUSH_SECONDS
            self.flush()

    def note_objects(self, work: tuple[str, str], seconds: Sequence[float]) -> None:
        """Count objects of a migration and a queue; the metrics know of them as of requests."""
        self._objects[work] += seconds

    def flush(self) -> None:
        """Have the metrics take in what was counted."""
        metrics.objects_in_flight.set(self.in_flight)
        for labels, seconds in self._requests.items():
            metrics.requests.labels(*labels).inc(len(seconds))
            metrics.request_seconds.labels(labels[0]).observe_all(seconds)
        for work, seconds in self._objects.items():
            metrics.object_seconds.labels(*work).observe_all(seconds)
        self._requests.clear()
        self._objects.clear()


def record_request(
    pace: Pacer,
    key: str,
    request: Request,
    result: Response | ObjectError,
    seconds: float,
    *,
    tally: TransferTally,
    in_flight: int,
) -> bool:
    """Count one try of a request and tell the pace of it; return whether the limit may be another now."""
    word = name_result(result) if isinstance(result, ObjectError) else OK
    tally.note(request.side, request.operation, word, [seconds], pace.clock())
    if isinstance(result, Response):
        size_bytes = result.body_bytes or (len(request.body) if request.source is None else request.source.length)
        return pace.note_success(key, seconds, size_bytes, in_flight)
    if isinstance(result, Throttled):
        metrics.throttled.labels(request.side).inc()
        return pace.note_refused(key, result.retry_after.total_seconds() if result.retry_after else 0.0)
    return False  # a 404 or a 412 has the latency of no copy, and a failure says nothing of the pace


def name_result(error: ObjectError) -> str:
    """Return the word that an error is counted under: what a condition or a missing object says, or its name."""
    if isinstance(error, ObjectNotFound):
        return "not_found"
    if isinstance(error, PreconditionFailed):
        return "precondition_failed"
    return type(error).__name__.lower()


def show_rates(pace: Pacer, names: Mapping[str, tuple[SideName, str]]) -> None:
    """Show the learned rates as metrics; `names` has the side and operation of each key."""
    for key, rate in pace.rates.items():
        if key in names:
            metrics.request_rate_limit.labels(*names[key]).set(rate.per_second or 0)
