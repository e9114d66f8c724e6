"""How many copies may run at once, by what the servers let through; and the metrics of their requests.

The limit rises additively and falls multiplicatively, as TCP's does (Chiu and Jain, "Analysis of the Increase and
Decrease Algorithms for Congestion Avoidance", 1989; slow start: RFC 5681). The decrease follows the share of requests
that were throttled (Alizadeh et al., "Data Center TCP", 2010), so that a server that refuses a few at random is not
left idle; rising latency is a second sign of congestion (Brakmo and Peterson, "TCP Vegas", 1994).
"""

from dataclasses import dataclass, field
from functools import cache

from prometheus_client import Counter, Histogram

from rowferry.errors import RESPONSE_TOO_LONG, ObjectError, ObjectNotFound, PreconditionFailed, Throttled
from rowferry.plan import SideName
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.monitoring import metrics
from rowferry_worker.objects.part_sources import READ_BYTES

START = 4
"""Objects in flight to begin with; doubled each round until the first sign of congestion."""
THROTTLED_CUT = 0.5
"""The part that is cut when a whole round was throttled; less, in proportion, when a share of it was."""
SLOW_FACTOR = 0.9
ROUNDS_TO_MOST = 64
"""How many rounds without congestion lead from nothing to the upper bound."""
SLOW_RATIO = 3.0
"""Latency this many times the best ever seen counts as congestion."""
SLOW_SECONDS = 0.25
"""... if it is this much longer as well: a few milliseconds more are no queue."""
BODIES_BYTES = 64 * 1024 * 1024
"""What the objects in flight may hold of bodies, together: each is in memory some four times on its way through."""
BODY_SMOOTHING_UP, BODY_SMOOTHING_DOWN = 0.5, 0.1
"""Larger bodies are believed sooner than smaller ones: memory that runs short does not wait."""
SMOOTHING = 0.05
BEST_DRIFT = 1.002
"""Each round the best latency is forgotten by 0.2 %, so that a server that has become slower for good is accepted."""


@dataclass(slots=True)
class ConcurrencyLimit:
    """The present limit, from `least` to `most`; told of each response, it moves at most once a round.

    Used on the event loop only. A round is as many responses as the limit was when the round began, which is about one
    round trip.
    """

    least: int
    most: int
    value: int = field(init=False)
    """How many objects may be in flight now."""
    _value: float = field(init=False)
    _slow_start: bool = field(init=False, default=True)
    _throttled: int = field(init=False, default=0)
    _responses: int = field(init=False, default=0)
    _latency: dict[str, float] = field(init=False, default_factory=dict[str, float])
    _best: dict[str, float] = field(init=False, default_factory=dict[str, float])
    _body_bytes: float = field(init=False, default=0.0)
    """What a request and its response held, on the average of the last ones."""

    def __post_init__(self) -> None:
        """Begin small."""
        self._set(START)

    def note(self, operation: str, seconds: float, *, throttled: bool, held: int | None = None) -> bool:
        """Take a response in: what was asked, how long it took, and whether it said to slow down.

        `held`: the bytes of body that it or its request had in memory; None: it says nothing of the objects' size.
        Return whether a round has ended, after which the limit may be another.
        """
        if held is not None:
            change = held - self._body_bytes
            self._body_bytes += (BODY_SMOOTHING_UP if change > 0 else BODY_SMOOTHING_DOWN) * change
            self._set(self._value)
        if throttled:
            self._throttled += 1
        else:
            before = self._latency.get(operation, seconds)
            self._latency[operation] = before + SMOOTHING * (seconds - before)
            self._best[operation] = min(self._best.get(operation, seconds), seconds)
        self._responses += 1
        ended = self._responses >= self.value
        if ended:
            self._end_round()
        return ended

    def _end_round(self) -> None:
        """Move the limit by what the round has shown."""
        step = max(1.0, self.most / ROUNDS_TO_MOST)
        moved = self._value
        if self._throttled:
            moved = moved * (1 - THROTTLED_CUT * self._throttled / self._responses) + step
        elif self._is_slow():
            moved *= SLOW_FACTOR
        else:
            moved = moved * 2 if self._slow_start else moved + step
        self._slow_start = self._slow_start and moved >= self._value and not self._throttled
        self._set(moved)
        self._best = {operation: best * BEST_DRIFT for operation, best in self._best.items()}
        self._throttled = self._responses = 0

    def _set(self, value: float) -> None:
        self._value = min(float(self.most), max(float(self.least), value))
        room = BODIES_BYTES / max(1.0, self._body_bytes)
        self.value = int(min(self._value, max(float(self.least), room)))

    def _is_slow(self) -> bool:
        """Return whether any operation takes much longer than it can."""
        return any(
            latency > SLOW_RATIO * self._best[operation] and latency > self._best[operation] + SLOW_SECONDS
            for operation, latency in self._latency.items()
        )


def record_request(
    limit: ConcurrencyLimit, request: Request, result: Response | ObjectError, seconds: float, *, again: bool
) -> bool:
    """Count one try of a request and tell the limit of it; return whether the limit may be another now."""
    error = result if isinstance(result, ObjectError) else None
    throttled = isinstance(error, Throttled)
    ended = limit.note(request.operation, seconds, throttled=throttled, held=measure_bodies(request, result))
    _requests(request.side, request.operation, name_result(error)).inc()
    _request_seconds(request.side).observe(seconds)
    if throttled:
        metrics.throttled.labels(request.side).inc()
    if again:
        metrics.request_retries.labels(request.side).inc()
    return ended


def measure_bodies(request: Request, result: Response | ObjectError) -> int | None:
    """Return the bytes of body that a request and its response had in memory; None where it came to nothing."""
    if isinstance(result, ObjectError):
        return READ_BYTES if result.code == RESPONSE_TOO_LONG else None
    return max(len(result.body), len(request.body))


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
