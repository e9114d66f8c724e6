"""What is told of each request: the metrics, the pace, and a line in the log when a server's rate is learned."""

import logging
from collections import Counter
from collections.abc import Sequence

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
from rowferry_worker.monitoring.tallies import Tally
from rowferry_worker.pacing.pacer import Pacer

_log = logging.getLogger(__name__)

SERVER_FAULT = 500
"""The first HTTP status that is the server's own failure."""
SETTLED_SECONDS = 5.0
"""A rate that was held for so long is worth a line."""
FLUSH_SECONDS = 0.1
"""How long a success may be counted before the metrics know of it."""
LINE_SECONDS = 60.0
"""No more than one line in so many seconds."""


class TransferTally:
    """Counts requests and objects until the metrics take them in: each of them passes here. Event-loop thread only."""

    def __init__(self) -> None:
        """Count from 0."""
        self._counts: Counter[tuple[SideName, str, str]] = Counter()
        self._seconds: dict[SideName, Tally] = {}
        self._object_seconds: dict[tuple[str, str], Tally] = {}
        self.in_flight = 0
        """Objects of the process that are being copied."""
        self._flush_at = 0.0

    def note(self, request: Request, error: ObjectError | None, seconds: float, now: float) -> None:
        """Count one try of a request; the metrics know of it within FLUSH_SECONDS if others follow, or at `flush`."""
        side = request.side
        self._counts[side, request.operation, "ok" if error is None else name_result(error)] += 1
        self._find_tally(side).observe_all([seconds])
        if error is not None or now >= self._flush_at:
            self._flush_at = now + FLUSH_SECONDS
            self.flush()

    def note_usual(self, side: SideName, operation: str, seconds: Sequence[float], now: float) -> None:
        """Count requests that have succeeded, by the seconds that they took."""
        self._counts[side, operation, "ok"] += len(seconds)
        self._find_tally(side).observe_all(seconds)
        if now >= self._flush_at:
            self._flush_at = now + FLUSH_SECONDS
            self.flush()

    def note_objects(self, work: tuple[str, str], seconds: Sequence[float]) -> None:
        """Count objects of a migration and a queue; the metrics know of them as of requests."""
        tally = self._object_seconds.get(work)
        if tally is None:
            tally = self._object_seconds[work] = metrics.object_seconds.labels(*work).new_tally()
        tally.observe_all(seconds)

    def _find_tally(self, side: SideName) -> Tally:
        tally = self._seconds.get(side)
        if tally is None:
            tally = self._seconds[side] = metrics.request_seconds.labels(side).new_tally()
        return tally

    def flush(self) -> None:
        """Have the metrics take in what was counted."""
        counts, self._counts = self._counts, Counter()
        metrics.objects_in_flight.set(self.in_flight)
        for labels, count in counts.items():
            metrics.requests.labels(*labels).inc(count)
        for tally in (*self._seconds.values(), *self._object_seconds.values()):
            tally.flush()


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
    error = result if isinstance(result, ObjectError) else None
    tally.note(request, error, seconds, pace.clock())
    if isinstance(result, Response):
        size_bytes = result.body_bytes or (len(request.body) if request.source is None else request.source.length)
        return pace.note_success(key, seconds, size_bytes, in_flight)
    if isinstance(result, Throttled):
        metrics.throttled.labels(request.side).inc()
        return pace.note_refused(key, result.retry_after.total_seconds() if result.retry_after else 0.0)
    # A 404 or a 412 shows that the server is there; its latency is that of no copy.
    return pace.note_answer() if 0 < result.status < SERVER_FAULT else pace.note_failure()


def name_result(error: ObjectError) -> str:
    """Return the word that an error is counted under: what a condition or a missing object says, or its name."""
    if isinstance(error, ObjectNotFound):
        return "not_found"
    if isinstance(error, PreconditionFailed):
        return "precondition_failed"
    return type(error).__name__.lower()


class RateReporter:
    """Shows the learned rates as metrics, and logs one that has come or gone, at most once a minute."""

    def __init__(self) -> None:
        """Begin with none."""
        self._since: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._told_at = 0.0

    def show(self, pace: Pacer, names: dict[str, tuple[SideName, str]], now: float) -> None:
        """Show the present rates; `names` has the side and operation of each key."""
        for key, rate in pace.rates.items():
            if key in names and (rate.per_second is not None or key in self._since):
                metrics.request_rate_limit.labels(*names[key]).set(rate.per_second or 0)
                self._log_change(key, names[key], rate.per_second, rate.through, now)

    def _log_change(
        self, key: str, name: tuple[SideName, str], per_second: float | None, through: float, now: float
    ) -> None:
        server = key.rpartition(" ")[0]
        fields: dict[str, object] = {"side": name[0], "operation": name[1], "bucket": server}
        may_tell = not self._told_at or now - self._told_at >= LINE_SECONDS
        if per_second is None:
            if key in self._told and may_tell:
                _log.info("the server lets all requests through again", extra=fields)
                self._told_at = now
                del self._told[key]
            if key not in self._told:
                del self._since[key]
        elif now - self._since.setdefault(key, now) > SETTLED_SECONDS and key not in self._told and may_tell:
            fields["requests_per_second"] = round(through, 1)
            _log.info("the server refuses more requests than this worker sends it now", extra=fields)
            self._told[key], self._told_at = through, now
