"""What a process has one of: made at the first call, and made anew in a forked child, which has no parent's threads."""

import os
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


def once_a_process(make: Callable[[], T]) -> Callable[[], T]:
    """Return a function that returns this process's own; any thread may call it."""
    made: dict[int, T] = {}
    turn = Lock()

    def share() -> T:
        process = os.getpid()
        if process not in made:
            with turn:
                if process not in made:
                    made[process] = make()
        return made[process]

    return share
