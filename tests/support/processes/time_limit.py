"""The time limit of each test, on a `LoadClock`: a test that hangs fails soon, a slow one on a busy machine does not.

pytest-timeout asks these hooks for its timer; conftest.py takes them in.
"""

import signal
from threading import Event, Thread, current_thread, main_thread

import pytest
import pytest_timeout

from support.processes.clock import LoadClock

LOOK_EVERY_SECONDS = 0.2


class TimeLimit:
    """A timer that sends SIGALRM to the main thread once so many seconds of a `LoadClock` have passed."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._clock, self._cancelled = seconds, LoadClock(), Event()
        self._thread = Thread(target=self._watch, name="time limit of a test", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._cancelled.wait(LOOK_EVERY_SECONDS):
            if self._clock.look() > self._seconds:
                signal.pthread_kill(main_thread().ident or 0, signal.SIGALRM)
                return

    def cancel(self) -> None:
        self._cancelled.set()
        self._thread.join()


@pytest.hookimpl
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    """Start the timer of a test; leave it to pytest-timeout where signals do not reach the test."""
    if settings.method != "signal" or current_thread() is not main_thread():
        return None

    def end_test(_number: int, _frame: object) -> None:
        pytest_timeout.timeout_sigalrm(item, settings)

    before = signal.signal(signal.SIGALRM, end_test)
    limit = TimeLimit(settings.timeout)

    def cancel() -> None:
        limit.cancel()
        signal.signal(signal.SIGALRM, before)

    item.cancel_timeout = cancel  # pyright: ignore[reportAttributeAccessIssue] - where pytest-timeout looks for it
    return True
