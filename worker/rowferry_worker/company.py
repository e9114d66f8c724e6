"""Lets the batches of a process be worked on side by side, but those that have killed a worker one by one, alone."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Condition, Event

LOOK_UP_SECONDS = 0.25


class Company:
    """Who is at work in this process. Otherwise a crash would count against all the batches that it took along."""

    def __init__(self) -> None:
        """Nobody is at work yet."""
        self._change = Condition()
        self._present = 0
        self._alone = False
        self._waiting_alone = 0

    @contextmanager
    def joined(self, *, alone: bool, unless: Event) -> Generator[bool]:
        """Wait until there is room; yield whether there was, before `unless` was set. The end of the block leaves."""
        if not self._join(unless, alone=alone):
            yield False
            return
        try:
            yield True
        finally:
            self._leave()

    def stay_alone(self) -> bool:
        """Return whether the caller, who has joined, is alone, and from now on stays so until it leaves."""
        with self._change:
            self._alone = self._alone or self._present == 1
            return self._alone

    def _join(self, unless: Event, *, alone: bool) -> bool:
        with self._change:
            self._waiting_alone += alone
            try:
                while not self._has_room(alone=alone):
                    if unless.is_set():
                        return False
                    self._change.wait(LOOK_UP_SECONDS)
            finally:
                self._waiting_alone -= alone
                self._change.notify_all()
            self._present += 1
            self._alone = alone
            return True

    def _has_room(self, *, alone: bool) -> bool:
        """Return whether one more may join; who wants to be alone goes before who does not."""
        if alone:
            return self._present == 0
        return not self._alone and not self._waiting_alone

    def _leave(self) -> None:
        with self._change:
            self._present -= 1
            self._alone = False
            self._change.notify_all()
