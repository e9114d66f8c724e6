"""The copies of one batch: which are left, which are under way, and how they ended."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from rowferry.errors import (
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    NotStarted,
    ObjectError,
    PreconditionFailed,
    SideFault,
)
from rowferry.s3.retry import may_pass, pause_before_retry
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.lanes import Lane, PlainCopies, begin_lane
from rowferry_worker.scheduling.recording import FLUSH_SECONDS

if TYPE_CHECKING:
    from rowferry_worker.scheduling.scheduler import CopyScheduler

Copy = Callable[[str], Coroutine[Any, Any, CopyResult]]
"""Copies (or verifies, or finds) the object of one key."""
ObjectResult = CopyResult | ObjectError
"""What a copy returned or raised."""

WHOLE_SIDE = (SideFault, CredentialsUnavailable, BucketNotFound)
"""Errors that every object of the side would meet."""
MAX_SIDE_FAULTS = 3
"""After so many of them in a batch, no more of its copies start."""
FindUsual = Callable[[], PlainCopies | None]
"""Returns what lanes do of a batch; None while its server is unknown, and where each object takes a task."""
Note = Callable[[str, ObjectResult, int], bool | None]
"""Is told, by its key, how a copy has ended, the last of so many of the usual kind; returns whether that seems the
server's fault."""


class CopyRun:
    """The copies of one batch; used on the event loop only."""

    def __init__(
        self,
        scheduler: "CopyScheduler",
        copy: Copy,
        keys: Iterable[str],
        *,
        deadline: float = math.inf,
        batch_id: int | None = None,
        work: tuple[str, str] | None = None,
        note: Note = lambda _key, _result, _count: None,
        is_look: bool = False,
        find_usual: FindUsual = lambda: None,
        most: float = math.inf,
    ) -> None:
        """`keys`: a key that comes twice is copied once. `note` is told how the copies ended.

        `deadline`: when no more copies start, by time.monotonic(); those under way go on. `batch_id`: the claimed batch
        whose entries are counted as claimed. `work`: the labels of the metrics; None: the objects are not measured.
        `is_look`: they were copied, and are looked at: the batch is about to end. `find_usual` returns what lanes do of
        it; None: an object takes a task, for now or for good. `most`: how many objects may be in flight, below the
        limit of the process.
        """
        self._scheduler = scheduler
        self._copy = copy
        self._not_started = deque(dict.fromkeys(keys))
        self._deadline = deadline
        self._batch_id = batch_id
        self._work = work
        self._note = note
        self.is_look = is_look
        self.usual: PlainCopies | None = None
        """What lanes do of the batch, once there is something."""
        self._find_usual = find_usual
        self._most = most
        self.in_hand: dict[str, asyncio.Task[None] | Lane] = {}
        """What copies the object of each key that is under way."""
        self._results: dict[str, ObjectResult] = {}
        self._seconds: list[float] = []
        """How long the usual requests took that were not told to anyone yet, in their order."""
        self._last_key = ""
        """That of the last of them."""
        self._flush_at = 0.0
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
        self._note_left()
        await self._done.wait()
        if stop is not None:
            stop.cancel()
        self._flush(time.monotonic())
        self._scheduler.tally.flush()
        if self._fault is not None:
            raise self._fault
        return {key: self._results.get(key) or NotStarted("NotStarted", "its turn did not come") for key in keys}

    @property
    def has_next(self) -> bool:
        """Return whether a copy may start, as far as it depends on this batch."""
        return bool(self._not_started) and len(self.in_hand) < self._most

    def find_usual(self) -> PlainCopies | None:
        """Return what lanes do of the batch, as soon as that is known. A mistake of ours fails the batch."""
        if self.usual is None:
            try:
                self.usual = self._find_usual()
            except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event loop
                self._fault, self._find_usual = fault, lambda: None
        return self.usual

    def take_key(self) -> str:
        """Return the key whose copy is next to start: there is one, by `has_next`."""
        key = self._not_started.popleft()
        if not self._not_started:
            self._scheduler.remove(self)
        return key

    def stop_starting(self) -> None:
        """Start no more copies; those under way go on."""
        if self._not_started:
            self._not_started.clear()
            self._scheduler.remove(self)
        self._note_left()

    def cancel(self) -> None:
        """Cancel the copies under way; their uploads are aborted, nothing else is sent for them."""
        self.stop_starting()
        for copy in list(self.in_hand.values()):
            copy.cancel()

    def start(self, key: str) -> None:
        """Copy the object of this key, in a lane if there is one."""
        if not begin_lane(self._scheduler, self, key):
            self.start_task(key)

    def start_task(self, key: str, after: ObjectError | None = None) -> None:
        """Copy the object of this key in a task; `after`: how its request in a lane has ended."""
        task = asyncio.create_task(self._copy_one(key, after), context=self._context)
        self.in_hand[key] = task
        task.add_done_callback(lambda _: self.leave(key))

    async def _copy_one(self, key: str, after: ObjectError | None) -> None:
        started = time.monotonic()
        try:
            if after is not None and may_pass(after):
                await asyncio.sleep(pause_before_retry(after, 1).total_seconds())
            is_there = isinstance(after, PreconditionFailed) and self.usual and self.usual.when_there
            result = await (is_there or self._copy)(key)
        except ObjectError as error:
            # Its frames would hold what was read, for as long as the batch is claimed.
            error.__traceback__ = error.__context__ = error.__cause__ = None
            result = error
        except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event loop
            self.note_fault(key, fault)
            return
        self._note_end(key, result, time.monotonic() - started)

    def end_usual(self, key: str, result: CopyResult, seconds: float, now: float) -> None:
        """Note the usual end of a copy in a lane; others are told of it in sums."""
        self._results[key] = result
        self._seconds.append(seconds)
        self._last_key = key
        if now >= self._flush_at:
            self._flush(now)
        del self.in_hand[key]
        left = len(self._not_started) + len(self.in_hand)
        if left < 16 or not left % 16:
            self._note_left()

    def end(self, key: str, result: ObjectResult, seconds: float) -> None:
        """Note another end of a copy in a lane."""
        self._note_end(key, result, seconds)
        del self.in_hand[key]
        self._note_left()

    def note_fault(self, key: str, fault: Exception) -> None:
        """Note a mistake of ours: the batch fails once its copies have ended."""
        self._fault = fault
        self._results[key] = Cancelled("Fault", str(fault))

    def leave(self, key: str) -> None:
        """Note that nothing copies the object of a key any more, and give its place back."""
        del self.in_hand[key]
        self._scheduler.note_end(is_look=self.is_look)
        self._note_left()

    def _note_end(self, key: str, result: ObjectResult, seconds: float) -> None:
        self._flush(time.monotonic())  # lest an error seems to follow the one before it
        self._results[key] = result
        is_of_side = self._tell(key, result, 1)
        if self._work is not None:
            self._scheduler.tally.note_objects(self._work, [seconds])
        if isinstance(result, WHOLE_SIDE) or is_of_side:
            self._side_faults += 1
            if self._side_faults == MAX_SIDE_FAULTS:
                self.stop_starting()

    def _flush(self, now: float) -> None:
        """Tell everyone of the usual ends since the last time."""
        self._flush_at = now + FLUSH_SECONDS
        seconds, self._seconds = self._seconds, []
        if seconds and self.usual is not None:
            self._tell(self._last_key, self._results[self._last_key], len(seconds))
            self._scheduler.record_usual(self.usual, seconds)
            if self._work is not None:
                self._scheduler.tally.note_objects(self._work, seconds)

    def _tell(self, key: str, result: ObjectResult, count: int) -> bool | None:
        try:
            return self._note(key, result, count)
        except Exception as fault:  # noqa: BLE001 - it belongs to the batch, not to the event loop
            self._fault = fault
            return False

    def _note_left(self) -> None:
        """Note how many copies have not ended; what counts them is told of every sixteenth, and of the last ones."""
        left = len(self._not_started) + len(self.in_hand)
        if self._batch_id is not None and (left < 16 or left % 16 == 0):
            self._scheduler.claimed_entries.note(self._batch_id, left)
        if not left:
            self._done.set()
