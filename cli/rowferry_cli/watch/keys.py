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
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from rowferry_cli.watch.snapshot import Snapshot

KEYS = {
    "n": ("next queue", "Shows the next queue, if there are several."),
    "p": ("pause", "Pauses the migration: workers finish their batches and claim no more."),
    "r": ("resume", "Resumes the migration."),
    "?": ("help", "Shows this list, as h does; again: goes back."),
    "q": ("quit", "Quits, as Ctrl-C does. The workers go on."),
}
"""What each key does: in the last line, and in the help."""
DROPPED_FIRST = "nrp"
"""Keys that the last line leaves out, in this order, where it is too narrow for all."""
ESCAPE_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|O.|.)?")
"""What arrows, function keys and Alt send; the letters in it are not keys."""

Action = Literal["pause", "resume"]
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
    """Return the keys that were pressed; `q` where the terminal is gone."""
    ready, _, _ = select.select([terminal], [], [], within.total_seconds())
    try:
        return ESCAPE_SEQUENCE.sub("", os.read(terminal, 64).decode("utf-8", "replace") or "q") if ready else ""
    except OSError:
        return "q"


def list_keys(width: int, *, has_queues: bool = False) -> str:
    """Return the keys and what they do, in one line of at most so many columns as long as one key is left."""
    useless: set[str] = set() if has_queues else {"n"}
    lines = [
        " · ".join(
            f"{key} {does}" for key, (does, _) in KEYS.items() if key not in useless | {*DROPPED_FIRST[:dropped]}
        )
        for dropped in range(len(DROPPED_FIRST) + 1)
    ]
    return next((line for line in lines if len(line) <= width), lines[-1])


@dataclass(frozen=True, slots=True)
class KeyHandler:
    """What the keys so far have led to."""

    action: Action | None = None
    """To be done now."""
    is_over: bool = False
    queue: str | None = None
    """The queue that is looked at; None: the first that is not done."""
    shows_help: bool = False

    def press(self, key: str, snapshot: Snapshot | None) -> KeyHandler:
        """Return the handler after a key; before the first snapshot only q means anything."""
        quiet = replace(self, action=None)
        match key.lower():
            case "q":
                return replace(quiet, is_over=True)
            case "?" | "h" if snapshot is not None:
                return replace(quiet, shows_help=not quiet.shows_help)
            case "p" if snapshot is not None:
                return replace(quiet, action="pause")
            case "r" if snapshot is not None:
                return replace(quiet, action="resume")
            case "n" if snapshot is not None:
                return replace(quiet, queue=snapshot.find_next(quiet.queue))
            case _:
                return quiet
