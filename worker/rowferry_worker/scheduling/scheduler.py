"""Runs the copies of all batches of a process on its event loop: never more at once than the limit."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from datetime import timedelta
from typing import Any

from rowferry.errors import (
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    NotStarted,
    ObjectError,
    SideFault,
)
from rowferry.plan import SideName
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.heartbeat import ClusterState, FleetRate
from rowferry_worker.multipart.large import PartRoom
from rowferry_worker.pacing.pacer import Pacer
from rowferry_worker.pacing.rate_limit import NO_WAIT, RateLimiter
from rowferry_worker.scheduling.claimed_entries import ClaimedEntries
from rowferry_worker.scheduling.recording import RateReporter, TransferTally, record_request

_log = logging.getLogger(__name__)


Copy = Callable[[str], Coroutine[Any, Any, CopyResult]]
"""Copies (or verifies, or finds) the object of one key."""
ObjectResult = CopyResult | ObjectError
"""What a copy returned or raised."""

WHOLE_SIDE = (SideFault, CredentialsUnavailable, BucketNotFound)
"""Errors that every object of the side would meet."""
MAX_SIDE_FAULTS = 3
"""After so many of them in a batch, no more of its copies start."""


class CopyScheduler:
    """Starts copies in the order of their batches, up to a limit that follows what the servers let through."""

    def __init__(
        self,
        most: int,
        least: int = 1,
        *,
        within: "CopyScheduler | None" = None,
        cluster: ClusterState | None = None,
    ) -> None:
        """`most`, `least`: the bounds of the limit; `within`: the process's scheduler, for one of a single batch.

        That one hears of the responses as well, and what it has learned of servers' rates holds for both. `cluster`:
        what the heartbeat tells of the other workers.
        """
        self._pace = Pacer(least, most)
        self.limit = self._pace.limit
        self.cluster = within.cluster if within else cluster or ClusterState()
        self.rates = self._pace.rates = within.rates if within else self._pace.rates
        self._heard: dict[str, FleetRate] | None = None
        self._names: dict[str, tuple[SideName, str]] = {}
        self._reporter = RateReporter()
        self.tally = within.tally if within else TransferTally()
        self.responded_at = time.monotonic()
        """When a request last ended, by time.monotonic(): the event loop is alive."""
        self._within = within
        self.claimed_entries = within.claimed_entries if within else ClaimedEntries(lambda: 2 * self.limit.value)
        """The entries of the process's claimed batches: twice the limit keeps it busy while a batch ends."""
        self._in_flight = self._looks = 0
        self._runs: deque[CopyRun] = deque()
        self.part_room = PartRoom(self.start_copies, self.note_end)
        """Room for further parts of large objects: each counts as an object in flight."""

    @property
    def request_rates(self) -> dict[str, float]:
        """Requests per second that are let through, by key, where a server refuses more. Any thread may ask."""
        return {key: rate.through for key, rate in self.rates.copy().items() if rate.is_held_back}

    def reserve(self, key: str, bound: RateLimiter | None) -> timedelta:
        """Take the turn of a request under what was learned of its server and the plan's bound.

        `key` names server, bucket and operation. Return how long to wait.
        """
        self._hear_cluster()
        wait = self._pace.reserve(key, bound)
        return timedelta(seconds=wait) if wait else NO_WAIT

    def record(self, key: str, request: Request, result: Response | ObjectError, seconds: float) -> None:
        """Record one try of a request; a limit that has risen lets more copies start. `key`: as of `reserve`."""
        self.note_response()
        if record_request(
            self._pace,
            key,
            request,
            result,
            seconds,
            tally=self.tally,
            in_flight=self._in_flight,
        ):
            self._names.setdefault(key, (request.side, request.operation))
            if self._within is None:
                metrics.objects_in_flight_limit.set(self.limit.value)
                self.claimed_entries.note_change()
                self._reporter.show(self._pace, self._names, self.responded_at)
            self.start_copies()

    def _hear_cluster(self) -> None:
        """Take in what the last heartbeat brought."""
        if self.cluster.fleet_rates is not self._heard:
            self._heard = self.cluster.fleet_rates
            rates = {key: (rate.per_second, rate.workers) for key, rate in self._heard.items()}
            self._pace.hear_fleet(self.cluster.size, rates)

    def note_response(self) -> None:
        """Note that a request has ended."""
        self.responded_at = time.monotonic()
        if self._within is not None:
            self._within.note_response()

    def add(self, run: "CopyRun") -> None:
        """Start the copies of a batch once those of the batches before it have started; looks come first."""
        if run.is_look:
            self._runs.appendleft(run)
        else:
            self._runs.append(run)
        self.start_copies()

    def start_copies(self) -> None:
        """Start tasks up to the limit; each goes on with its batch's next copy when one has ended."""
        self.part_room.grant(self._take_place, self.limit.value // 2 if self._runs else self.limit.value)
        while run := next((run for run in self._runs if self._is_below_limit(is_look=run.is_look)), None):
            key = run.take_key()
            if key is None:
                self._runs.remove(run)
            else:
                self._count(1, is_look=run.is_look)
                run.start(key)

    def _is_below_limit(self, most_above: int = 0, *, is_look: bool) -> bool:
        """Return whether another may begin. While a rate holds copies back, looks are counted by themselves.

        Else they would hold copies back at each end of a batch, or wait for them.
        """
        limit, count = self.limit.value, self._in_flight
        if self.limit.cap < math.inf:
            limit, count = (self.limit.free, self._looks) if is_look else (limit, count - self._looks)
        return count < limit + most_above

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

    def has_room(self, *, is_look: bool) -> bool:
        """Return whether a task may go on with another copy: the limit may have fallen."""
        return self._is_below_limit(1, is_look=is_look)

    def note_end(self, *, is_look: bool = False) -> None:
        """Note that a task has ended, and start others in its place."""
        self._count(-1, is_look=is_look)
        self.start_copies()


class CopyRun:
    """The copies of one batch; used on the event loop only."""

    def __init__(
        self,
        scheduler: CopyScheduler,
        copy: Copy,
        keys: Iterable[str],
        *,
        deadline: float = math.inf,
        batch_id: int | None = None,
        work: tuple[str, str] | None = None,
        note: Callable[[str, ObjectResult], None] = lambda _key, _result: None,
        is_look: bool = False,
    ) -> None:
        """`keys`: a key that comes twice is copied once. `note` is told how each copy ended.

        `deadline`: when no more copies start, by time.monotonic(); those under way go on. `batch_id`: the claimed batch
        whose entries are counted as claimed. `work`: the labels of the metrics; None: the objects are not measured.
        `is_look`: they were copied, and are looked at: the batch is about to end.
        """
        self._scheduler = scheduler
        self._copy = copy
        self._not_started = deque(dict.fromkeys(keys))
        self._deadline = deadline
        self._batch_id = batch_id
        self._work = work
        self._note = note
        self.is_look = is_look
        self._results: dict[str, ObjectResult] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._context = copy_context()
        """Names the batch in log lines, also where another batch's end lets a copy start."""
        self._done = asyncio.Event()
        self._side_faults = 0
        self._fault: Exception | None = None

    async def run_all(self) -> dict[str, ObjectResult]:
        """Copy the object of each key and return its result; NotStarted where its copy did not start.

        Raises an unexpected exception of any of them once all have ended: the batch must not trust its results.
        """
        keys = list(self._not_started)
        stop = None
        if self._deadline < math.inf:
            seconds_left = max(0.0, self._deadline - time.monotonic())
            stop = asyncio.get_running_loop().call_later(seconds_left, self.stop_starting)
        self._scheduler.add(self)
        self._note_progress()
        await self._done.wait()
        if stop is not None:
            stop.cancel()
        self._scheduler.tally.flush()
        if self._fault is not None:
            raise self._fault
        return {key: self._results.get(key) or NotStarted("NotStarted", "its turn did not come") for key in keys}

    def stop_starting(self) -> None:
        """Start no more copies; those under way go on."""
        self._not_started.clear()
        self._note_progress()

    def cancel(self) -> None:
        """Cancel the copies under way; their uploads are aborted, nothing else is sent for them."""
        self._not_started.clear()
        for task in self._tasks:
            task.cancel()
        self._note_progress()

    def take_key(self) -> str | None:
        """Return the key whose copy is next to start, None where all have started."""
        return self._not_started.popleft() if self._not_started else None

    def start(self, key: str) -> None:
        """Copy the object of this key, and then those of others."""
        task = asyncio.create_task(self._copy_from(key), context=self._context)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _take_next(self) -> str | None:
        """Return the key that goes on in the place of one whose copy has ended; None where its place is given back."""
        if not self._not_started or not self._scheduler.has_room(is_look=self.is_look):
            return None
        key = self._not_started.popleft()
        self._note_left()
        return key

    async def _copy_from(self, first_key: str) -> None:
        key: str | None = first_key
        while key is not None:
            started = time.monotonic()
            try:
                result = self._results[key] = await self._copy(key)
                self._note(key, result)
            except ObjectError as error:
                self._note_error(key, error)
            except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event loop
                self._fault = fault
                self._results[key] = Cancelled("Fault", str(fault))
            if self._work is not None:
                self._scheduler.tally.note_object(self._work, time.monotonic() - started)
            key = self._take_next()

    def _note_error(self, key: str, error: ObjectError) -> None:
        # Its frames would hold what was read, for as long as the batch is claimed.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        self._results[key] = error
        self._note(key, error)
        if isinstance(error, WHOLE_SIDE) or error.is_of_side:
            self._side_faults += 1
            if self._side_faults == MAX_SIDE_FAULTS:
                self._not_started.clear()

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._scheduler.note_end(is_look=self.is_look)
        self._note_progress()

    def _note_left(self) -> int:
        """Return how many copies have not ended; what counts them is told of every sixteenth, and of the last ones."""
        left = len(self._not_started) + len(self._tasks)
        if self._batch_id is not None and (left < 16 or left % 16 == 0):
            self._scheduler.claimed_entries.note(self._batch_id, left)
        return left

    def _note_progress(self) -> None:
        if not self._note_left():
            self._done.set()
