"""Reads keys from the terminal, and decides what each means."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rowferry_cli.watching.snapshot import Snapshot

HELP = "p pause · r resume · e requeue errors · q quit"
HELP_WITH_QUEUES = f"n next queue · {HELP}"
"""Where there are several."""
QUIT = "q"
CHUNK_BYTES = 64
ESCAPE_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|O.|.)?")
"""What arrows, function keys and Alt send; the letters in it are not keys."""

Action = Literal["pause", "resume", "requeue"]
ReadKeys = Callable[[timedelta], str]
"""Waits for keys, at most this long, and returns them; "" if none was pressed."""


@contextmanager
def open_keyboard() -> Generator[ReadKeys]:
    """Yield a function that reads keys; restore the terminal at the end of the block.

    Keys are not echoed and need no Enter; Ctrl-C stays a signal. Escape sequences are dropped.
    """
    if not sys.stdin.isatty():
        yield _wait
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSANOW)
    try:
        yield lambda within: _read(terminal, within)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _wait(within: timedelta) -> str:
    time.sleep(within.total_seconds())
    return ""


def _read(terminal: int, within: timedelta) -> str:
    ready, _, _ = select.select([terminal], [], [], within.total_seconds())
    if not ready:
        return ""
    try:
        chunk = os.read(terminal, CHUNK_BYTES)
    except OSError:
        return QUIT  # the terminal is gone
    if not chunk:
        return QUIT
    return ESCAPE_SEQUENCE.sub("", chunk.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class KeyHandler:
    """What the keys so far have led to."""

    question: str = ""
    """Open until answered with y or n."""
    reply: str = ""
    """Why the last key did nothing."""
    action: Action | None = None
    """To be done now."""
    is_over: bool = False
    queue: str | None = None
    """The queue that is looked at; None: the first that is not done."""

    def press(self, key: str, snapshot: Snapshot | None) -> KeyHandler:
        """Return the handler after a key; before the first snapshot only q works."""
        key = key.lower()
        if self.question:
            return self._answer(key)
        if key == "q":
            return KeyHandler(is_over=True)
        return _start(key, snapshot, self.queue) if snapshot is not None else KeyHandler(queue=self.queue)

    def _answer(self, key: str) -> KeyHandler:
        """Take y for yes, n and q for no; ignore other keys."""
        if key == "y":
            return KeyHandler(action="requeue", queue=self.queue)
        return KeyHandler(queue=self.queue) if key in {"n", "q"} else self


def _start(key: str, snapshot: Snapshot, queue: str | None) -> KeyHandler:
    looked_at = snapshot.find_queue(queue)
    batches = looked_at.total.batches_error if looked_at else 0
    of_queue = f" of {looked_at.name}" if looked_at and len(snapshot.queues) > 1 else ""
    match key:
        case "p":
            return KeyHandler(action="pause", queue=queue)
        case "r":
            return KeyHandler(action="resume", queue=queue)
        case "n":
            return KeyHandler(queue=snapshot.find_next(queue))
        case "e" if looked_at and batches:
            # What is asked must stay what is done, also where the view would go on to the next queue meanwhile.
            question = f"Put all batches in ERROR{of_queue} ({batches:,}) back into the queue? (y/n)"
            return KeyHandler(question, queue=looked_at.name)
        case "e":
            return KeyHandler(reply=f"No batch{of_queue} is in ERROR.", queue=queue)
        case _:
            return KeyHandler(queue=queue)
