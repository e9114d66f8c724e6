"""The time that the pace of a run is reckoned by: without the waits in which no worker could go on."""

from datetime import timedelta

NO_STALL = timedelta(seconds=15)
"""So long without progress is no slower pace: workers tell it once a second, and a dead one is waited for. As in
sql/views/rate_10m.sql."""


class MovingTime:
    """Follows the progress of a run. Moments are those of time.monotonic()."""

    def __init__(self, started: float) -> None:
        """`started`: when the run began."""
        self._started = self._moved_at = self._noted_at = started
        self._most = 0
        self._was_held_up = False
        self._waited = self._waited_since = 0.0
        """Seconds in which nothing could move: before it last moved, and since then."""

    def note(self, now: float, progress: int, *, is_held_up: bool) -> timedelta:
        """Return the time in which this progress was made.

        `is_held_up`: from now on nothing can move, since all open batches wait for the silence of dead workers.
        """
        self._waited_since += now - self._noted_at if self._was_held_up else 0.0
        self._noted_at, self._was_held_up = now, is_held_up
        if progress > self._most:
            self._waited += self._waited_since
            self._most, self._moved_at, self._waited_since = progress, now, 0.0
        if now - self._moved_at < NO_STALL.total_seconds():
            return timedelta(seconds=self._moved_at - self._started - self._waited)
        return timedelta(seconds=now - self._started - self._waited - self._waited_since)
