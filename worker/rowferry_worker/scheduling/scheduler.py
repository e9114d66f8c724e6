"""Decides which copies of all batches of a process start when: never more at once than the limit."""

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rowferry.errors import ObjectError
from rowferry.plan import SideName
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.heartbeat import ClusterState, FleetRate
from rowferry_worker.multipart.large import PartRoom
from rowferry_worker.pacing.pacer import Pacer
from rowferry_worker.pacing.rate_limit import NO_WAIT, Bound
from rowferry_worker.scheduling.claimed_entries import ClaimedEntries
from rowferry_worker.scheduling.copy_run import CopyRun
from rowferry_worker.scheduling.lanes import PlainCopies
from rowferry_worker.scheduling.recording import OK, TransferTally, record_request, show_rates


class CopyScheduler:
    """Starts copies in the order of their batches, up to a limit that follows what the servers let through."""

    def __init__(self, most: int, least: int = 1, *, cluster: ClusterState | None = None) -> None:
        """`most`, `least`: the bounds of the limit; `cluster`: what the heartbeat tells of the other workers."""
        self._pace = Pacer(least, most)
        self.limit, self.rates = self._pace.limit, self._pace.rates
        self.cluster = cluster or ClusterState()
        self._heard: dict[str, FleetRate] | None = None
        self._names: dict[str, tuple[SideName, str]] = {}
        self.tally = TransferTally()
        self.responded_at = time.monotonic()
        """When a request last ended, by time.monotonic(): the event loop is alive."""
        self.claimed_entries = ClaimedEntries(lambda: 2 * self.limit.value)
        """The entries of the process's claimed batches: twice the limit keeps it busy while a batch ends."""
        self._in_flight = self._looks = 0
        self._runs: deque[CopyRun] = deque()
        """Those whose copies have not all started."""
        self.part_room = PartRoom(self.start_copies, self.note_end)
        """Room for further parts of large objects: each counts as an object in flight."""

    @property
    def request_rates(self) -> dict[str, float]:
        """Requests per second that are let through, by key, where a server refuses more. Any thread may ask."""
        return {key: rate.through for key, rate in self.rates.copy().items() if rate.is_held_back}

    def reserve(self, key: str, bound: Bound | None) -> timedelta:
        """Take the turn of a request under what was learned of its server and the plan's bound.

        `key` names server, bucket and operation. Return how long to wait.
        """
        self._hear_cluster()
        wait = self._pace.reserve(key, bound)
        return timedelta(seconds=wait) if wait else NO_WAIT

    def is_open(self, usual: PlainCopies) -> bool:
        """Return whether such requests need not wait for their turns, as far as was learned."""
        rate = self.rates.get(usual.rate_key)
        return rate is None or rate.per_second is None

    def record(self, key: str, request: Request, result: Response | ObjectError, seconds: float) -> None:
        """Record one try of a request; `key` is as of `reserve`."""
        self.responded_at = time.monotonic()
        in_flight, tally = self._in_flight, self.tally
        if record_request(self._pace, key, request, result, seconds, tally=tally, in_flight=in_flight):
            self._apply_limit(key, request.side, request.operation)

    def record_usual(self, usual: PlainCopies, seconds: list[float]) -> None:
        """Record requests of lanes that have succeeded, by the seconds that they took."""
        self.responded_at = time.monotonic()
        self._hear_cluster()
        self.tally.note(usual.side, usual.operation, OK, seconds, self.responded_at)
        if self._pace.note_successes(usual.rate_key, seconds, usual.size_bytes, self._in_flight):
            self._apply_limit(usual.rate_key, usual.side, usual.operation)

    def _apply_limit(self, key: str, side: SideName, operation: str) -> None:
        """Let more copies start where the limit has risen."""
        self._names.setdefault(key, (side, operation))
        metrics.objects_in_flight_limit.set(self.limit.value)
        self.claimed_entries.note_change()
        show_rates(self._pace, self._names)
        self.start_copies()

    def _hear_cluster(self) -> None:
        """Take in what the last heartbeat brought."""
        if self.cluster.fleet_rates is not self._heard:
            self._heard = self.cluster.fleet_rates
            rates = {key: (rate.per_second, rate.workers) for key, rate in self._heard.items()}
            self._pace.hear_fleet(self.cluster.size, rates)

    def add(self, run: CopyRun) -> None:
        """Start the copies of a batch once those of the batches before it have started; looks come first."""
        if not run.has_next:
            return
        if run.is_look:
            self._runs.appendleft(run)
        else:
            self._runs.append(run)
        self.start_copies()

    def remove(self, run: CopyRun) -> None:
        """Forget a batch no copy of which is left to start."""
        if run in self._runs:
            self._runs.remove(run)

    def start_copies(self) -> None:
        """Start copies up to the limit."""
        self.part_room.grant(self._take_place, self.limit.value // 2 if self._runs else self.limit.value)
        while (run := self._find_next()) is not None:
            self._count(1, is_look=run.is_look)
            run.start(run.take_key())

    def take_next(self, client: ObjectClient) -> tuple[CopyRun, PlainCopies, str] | None:
        """Return the copy that goes on in the place of a lane of this client; None: the place is to be given back."""
        if self._in_flight > self.limit.value or self.part_room.is_wanted or client.is_wanted:
            return None
        for run in self._runs:
            if run.has_next:
                usual = run.find_usual()
                if usual is None or usual.client is not client or not self.is_open(usual):
                    return None
                return run, usual, run.take_key()
        return None

    def _find_next(self) -> CopyRun | None:
        for run in self._runs:
            if run.has_next and self._is_below_limit(is_look=run.is_look):
                return run
        return None

    def _is_below_limit(self, *, is_look: bool) -> bool:
        """Return whether another may begin. While a rate holds copies back, looks are counted by themselves.

        Else they would hold copies back at each end of a batch, or wait for them.
        """
        limit, count = self.limit.value, self._in_flight
        if self.limit.cap < math.inf:
            limit, count = (self.limit.free, self._looks) if is_look else (limit, count - self._looks)
        return count < limit

    def _take_place(self) -> bool:
        """Count one more that is no look in flight, if the limit allows it; return whether it does."""
        if not self._is_below_limit(is_look=False):
            return False
        self._count(1, is_look=False)
        return True

    def _count(self, more: int, *, is_look: bool) -> None:
        """Count so many more in flight."""
        self._in_flight += more
        self._looks += more * is_look
        self.tally.in_flight += more

    def note_end(self, *, is_look: bool = False) -> None:
        """Note that a copy has ended, and start others in its place."""
        self._count(-1, is_look=is_look)
        self.start_copies()


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
