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
    "m": ("next migration", "Shows the next migration of this database."),
    "p": ("pause", "Pauses the migration: workers finish their batches and claim no more."),
    "r": ("resume", "Resumes the migration."),
    "e": ("requeue errors", "Requeues all batches of the queue in ERROR, after a question."),
    "?": ("help", "Shows this list, as h does; again: goes back."),
    "q": ("quit", "Quits, as Ctrl-C does. The workers go on."),
}
"""What each key does: in the last line, and in the help."""
DROPPED_FIRST = "mnerp"
"""Keys that the last line leaves out, in this order, where it is too narrow for all."""
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
    """Return the keys that were pressed; `q` where the terminal is gone."""
    ready, _, _ = select.select([terminal], [], [], within.total_seconds())
    try:
        return ESCAPE_SEQUENCE.sub("", os.read(terminal, 64).decode("utf-8", "replace") or "q") if ready else ""
    except OSError:
        return "q"


def list_keys(width: int, *, has_queues: bool = False, has_migrations: bool = False) -> str:
    """Return the keys and what they do, in one line of at most so many columns as long as one key is left."""
    useless = {key for key, is_of_use in (("n", has_queues), ("m", has_migrations)) if not is_of_use}
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

    question: str = ""
    """Open until answered with y or n."""
    reply: str = ""
    """Why the last key did nothing."""
    action: Action | None = None
    """To be done now."""
    is_over: bool = False
    queue: str | None = None
    """The queue that is looked at; None: the first that is not done."""
    migration: str | None = None
    """The migration that is looked at; None: the one that was asked for at the start."""
    shows_help: bool = False

    def press(self, key: str, snapshot: Snapshot | None) -> KeyHandler:
        """Return the handler after a key. `snapshot`: of the migration that is looked at; without one only q works."""
        key = key.lower()
        quiet = replace(self, question="", reply="", action=None)
        if self.question:  # n and q are no; other keys are ignored
            return replace(quiet, action="requeue") if key == "y" else quiet if key in {"n", "q"} else self
        if key == "q":
            return replace(quiet, is_over=True)
        return _start(key, snapshot, quiet) if snapshot is not None else quiet


def _start(key: str, snapshot: Snapshot, quiet: KeyHandler) -> KeyHandler:
    match key:
        case "?" | "h":
            return replace(quiet, shows_help=not quiet.shows_help)
        case "p" | "r":
            return replace(quiet, action="pause" if key == "p" else "resume")
        case "n":
            return replace(quiet, queue=snapshot.find_next(quiet.queue))
        case "m":
            if len(snapshot.migration["migrations"]) < 2:
                return replace(quiet, reply="There is no other migration in this database.")
            return replace(quiet, queue=None, migration=snapshot.find_next_migration())
        case _:
            return _ask(snapshot, quiet) if key == "e" else quiet


def _ask(snapshot: Snapshot, quiet: KeyHandler) -> KeyHandler:
    """Ask whether the errors of the queue that is looked at are to be requeued."""
    looked_at = snapshot.find_queue(quiet.queue)
    batches = looked_at["batches_error"] if looked_at else 0
    of_queue = f" of {looked_at['queue']}" if looked_at and len(snapshot.queues) > 1 else ""
    if looked_at is None or not batches:
        return replace(quiet, reply=f"No batch{of_queue} is in ERROR.")
    # What is asked must stay what is done, also where the view would go on to the next queue meanwhile.
    question = f"Put all batches in ERROR{of_queue} ({batches:,}) back into the queue? (y/n)"
    return replace(quiet, question=question, queue=looked_at["queue"])
