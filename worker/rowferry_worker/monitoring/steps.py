"""Where the time of a batch goes: its seconds by step, for the metric rowferry_step_seconds_total."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

from rowferry_worker.monitoring import metrics

Step = Literal["claim", "read", "perform", "update", "commit", "held"]
"""`claim`: a batch is locked and its attempt recorded; `read`: its entries are read; `perform`: the queue's work, S3
requests included; `update`: rows are written; `commit`: the verdict is written and committed; `held`: it waits for a
limit of the plan, for batches that must run alone, or for PostgreSQL to come back."""


class StepClock:
    """Adds up the seconds of one batch. A step inside another counts as itself alone, so all add up to the whole.

    Not thread-safe: a batch belongs to one slot.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """`now`: seconds, never going back."""
        self._now = now
        self._open: list[Step] = []
        self._since = 0.0
        self.seconds: dict[Step, float] = {}

    @contextmanager
    def step(self, name: Step) -> Generator[None]:
        """Count the time of the block as this step's, but for that of steps inside it."""
        self._settle()
        self._open.append(name)
        try:
            yield
        finally:
            self._settle()
            self._open.pop()

    def add(self, name: Step, seconds: float) -> None:
        """Count seconds that were measured elsewhere, outside of any step."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def report(self, work: tuple[str, str]) -> None:
        """Add what was counted to the metric, once; `work`: migration and queue, as `metrics.name_work` names them."""
        for name, seconds in self.seconds.items():
            metrics.step_seconds.labels(*work, name).inc(seconds)
        self.seconds = {}

    def _settle(self) -> None:
        """Give the time since the last change to the innermost step."""
        now = self._now()
        if self._open:
            self.add(self._open[-1], now - self._since)
        self._since = now
