"""Drives requests for up to a minute, with the scheduler and the limits of a worker, and takes readings meanwhile."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import wait
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rowferry.errors import Throttled
from rowferry.http import event_loop
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response
from rowferry.s3.retry import Send
from rowferry_cli.estimate.dry_run import Operation
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.scheduler import WHOLE_SIDE, CopyRun, CopyScheduler

SLICE = timedelta(seconds=0.25)
DRAIN_WITHIN = timedelta(seconds=5)
"""How long what is in flight may take once the time is over; then it is cancelled."""
CANCEL_WITHIN = timedelta(seconds=5)
"""How long uploads may take to be aborted."""
LAP = 2000
"""Looks that are queued at once where keys are looked at again and again."""
LATENCIES = 500
"""Of the first and of the last requests of each operation, which are compared."""


@dataclass(frozen=True, slots=True)
class MeterReading:
    """The counters at one moment."""

    at: float
    """By time.monotonic()."""
    cpu_seconds: float
    ended: int
    """Objects."""
    bytes: int
    requests: Counter[Operation]
    refused: Counter[Operation]
    """Of them, those that were throttled."""
    limit: int
    """Objects that may be in flight."""


@dataclass(slots=True)
class RequestMeter:
    """Counts requests and keeps some of their times; stands between the worker's machinery and the clients."""

    scheduler: CopyScheduler
    send_on: Send
    requests: Counter[Operation] = field(default_factory=Counter[Operation])
    refused: Counter[Operation] = field(default_factory=Counter[Operation])
    first_seconds: dict[Operation, list[float]] = field(default_factory=dict[Operation, list[float]])
    last_seconds: dict[Operation, deque[float]] = field(default_factory=dict[Operation, deque[float]])

    async def send(self, request: Request) -> Response:
        """Send a request once, as `ObjectClient.send`, and count it."""
        operation: Operation = (request.side, request.operation)
        self.requests[operation] += 1
        started = time.monotonic()
        try:
            response = await self.send_on(request)
        except Throttled:
            self.refused[operation] += 1
            raise
        self._note_seconds(operation, time.monotonic() - started)
        return response

    def _note_seconds(self, operation: Operation, seconds: float) -> None:
        first = self.first_seconds.setdefault(operation, [])
        if len(first) < LATENCIES:
            first.append(seconds)
        last = self.last_seconds.get(operation)
        if last is None:
            last = self.last_seconds[operation] = deque(maxlen=LATENCIES)
        last.append(seconds)


@dataclass(slots=True)
class Drive:
    """One stretch of driving: its readings, and how it ended."""

    meter: RequestMeter
    count_bytes: Callable[[], int]
    readings: list[MeterReading] = field(default_factory=list[MeterReading])
    ended: int = 0
    is_interrupted: bool = False
    """By Ctrl-C."""
    has_side_fault: bool = False
    _runs: set[CopyRun] = field(default_factory=set[CopyRun])
    _is_over: bool = False

    def drive(
        self,
        work: Callable[[int], Coroutine[Any, Any, CopyResult]],
        numbers: int | None,
        within: timedelta,
        is_enough: Callable[["Drive"], bool],
    ) -> None:
        """Work on 0, 1, 2 ... `numbers` - 1 (None: for ever) until time is over, it is enough, or Ctrl-C is pressed."""
        deadline = time.monotonic() + within.total_seconds()
        future = event_loop.submit(self._run_laps(work, numbers))
        try:
            self.take_reading()
            while not future.done() and time.monotonic() < deadline and not is_enough(self):
                wait([future], SLICE.total_seconds())
                self.take_reading()
            event_loop.call_soon(self._stop)
            wait([future], DRAIN_WITHIN.total_seconds())
        except KeyboardInterrupt:
            self.is_interrupted = True
            self.take_reading()
        finally:
            event_loop.call_soon(self._cancel)
            wait([future], CANCEL_WITHIN.total_seconds())
        if future.done():
            future.result()

    def take_reading(self) -> None:
        meter = self.meter
        self.readings.append(
            MeterReading(
                time.monotonic(),
                time.process_time(),
                self.ended,
                self.count_bytes(),
                Counter(meter.requests),
                Counter(meter.refused),
                meter.scheduler.limit.value,
            )
        )

    async def _run_laps(self, work: Callable[[int], Coroutine[Any, Any, CopyResult]], numbers: int | None) -> None:
        """Keep two laps queued, so that what is in flight does not run low between them."""

        async def work_on(label: str) -> CopyResult:
            try:
                return await work(int(label))
            except WHOLE_SIDE:
                self.has_side_fault = True
                raise
            finally:
                self.ended += 1

        laps: set[asyncio.Task[None]] = set()
        for labels in _laps(numbers):
            while len(laps) >= 2:
                done, laps = await asyncio.wait(laps, return_when=asyncio.FIRST_COMPLETED)
                for lap in done:
                    lap.result()
            if self._is_over or self.has_side_fault:
                break
            laps.add(asyncio.create_task(self._run_lap(CopyRun(self.meter.scheduler, work_on, labels))))
        if laps:
            await asyncio.gather(*laps)

    async def _run_lap(self, run: CopyRun) -> None:
        self._runs.add(run)
        try:
            await run.run_all()
        finally:
            self._runs.discard(run)

    def _stop(self) -> None:
        self._is_over = True
        for run in tuple(self._runs):
            run.stop_starting()

    def _cancel(self) -> None:
        self._is_over = True
        for run in tuple(self._runs):
            run.cancel()


def _laps(numbers: int | None) -> Iterator[list[str]]:
    first = 0
    while numbers is None or first < numbers:
        after = first + LAP if numbers is None else min(first + LAP, numbers)
        yield [str(number) for number in range(first, after)]
        first = after
