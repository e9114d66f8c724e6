"""Delays Ctrl-C and SIGTERM while a process is started, so that it is not left behind."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def hold_interrupts() -> Generator[None]:
    """Deliver SIGINT and SIGTERM at the end of the block.

    Otherwise KeyboardInterrupt may come between the start of a process and the assignment of its handle. Python runs
    signal handlers on the main thread only: on another there is nothing to delay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in HELD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in received:
            signal.raise_signal(number)
