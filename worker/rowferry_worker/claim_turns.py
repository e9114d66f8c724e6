"""The turns in which the slots of a process claim: one at a time, so that an idle process polls like a single slot."""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Lock

LOOK_UP_SECONDS = 0.25
"""How often a waiting slot looks whether it must stop, and whether PostgreSQL must be shown that it lives."""


class ClaimTurns:
    """The slot that was busy last goes first. So slots that are not needed wait for long, and can end."""

    def __init__(self) -> None:
        """Nobody has the turn."""
        self._lock = Lock()
        self._is_taken = False
        self._waiting: list[Event] = []
        self._has_ended = Event()

    @property
    def is_taken(self) -> bool:
        """Whether a slot has the turn: it claims, or waits until another batch is wanted."""
        return self._is_taken

    def take(self, within: timedelta, *, unless: Callable[[], bool]) -> bool:
        """Wait for the turn; return False, without it, after `within` or once `unless` is true."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            given = Event()
            self._waiting.append(given)
        deadline = time.monotonic() + within.total_seconds()
        while not given.wait(LOOK_UP_SECONDS):
            if unless() or time.monotonic() >= deadline:
                with self._lock:
                    if given in self._waiting:
                        self._waiting.remove(given)
                        return False
        return True

    def note_end(self) -> None:
        """Note that a batch has ended, which may have put entries back: it is worth looking for work."""
        self._has_ended.set()

    def wait_for_end(self, within: timedelta, unless: Callable[[], bool]) -> bool:
        """Return True once a batch of this process has ended, False after `within` or once `unless` is true.

        One that has ended since the last call counts: the queue may have been asked before.
        """
        deadline = time.monotonic() + within.total_seconds()
        while (left := deadline - time.monotonic()) > 0 and not unless():
            if self._has_ended.wait(min(left, LOOK_UP_SECONDS)):
                self._has_ended.clear()
                return True
        return False

    def give(self) -> None:
        """End the turn, and give it to the slot that began to wait last."""
        with self._lock:
            if self._waiting:
                self._waiting.pop().set()
            else:
                self._is_taken = False
