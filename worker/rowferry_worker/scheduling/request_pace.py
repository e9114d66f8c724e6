"""The pace of one migration's requests: what a scheduler has learned of its servers, within the plan's bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rowferry.errors import ObjectError
from rowferry.plan import SideName
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.pacing.rate_limit import Bound
from rowferry_worker.scheduling.scheduler import CopyScheduler


@dataclass(frozen=True, slots=True)
class RequestPace:
    """What ObjectRequests asks before each request and tells after it; event-loop thread only.

    A rate is learned of a server, a bucket and an operation.
    """

    scheduler: CopyScheduler
    bounds: Mapping[SideName, Bound]
    buckets: Mapping[SideName, str]
    """Server and bucket of each side."""

    def reserve(self, side: SideName, operation: str) -> timedelta:
        """Take the turn of a request, and return how long to wait for it."""
        return self.scheduler.reserve(f"{self.buckets[side]} {operation}", self.bounds.get(side))

    def record(self, request: Request, result: Response | ObjectError, seconds: float) -> None:
        """Record one try of a request."""
        self.scheduler.record(f"{self.buckets[request.side]} {request.operation}", request, result, seconds)
