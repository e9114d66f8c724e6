"""Holds Ctrl-C and SIGTERM back while something is started that must not be left behind."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def hold_interrupts() -> Generator[None]:
    """Let the signals that stop a command take effect at the end of the block instead of anywhere in it.

    Without it, KeyboardInterrupt may come after a process was started and before anybody knows whom to stop. Python
    runs handlers on the main thread only: on another one there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in HELD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in came:
            signal.raise_signal(number)
