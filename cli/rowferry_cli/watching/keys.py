"""What a key means: decisions only."""

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

from rowferry_cli.watching.snapshot import Picture

QUIT = "q"
CHUNK_BYTES = 64
ESCAPE_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|O.|.)?")
"""What arrows, function keys and Alt send; their letters are no keys that somebody pressed."""

ReadKeys = Callable[[timedelta], str]
"""Waits for keys, at most so long, and returns them; "" when none was pressed."""


@contextmanager
def listen_to_keys() -> Generator[ReadKeys]:
    """Yield a function that returns the keys pressed; the terminal is as before when the block ends, however it ends.

    Keys are neither echoed nor held back until Enter; Ctrl-C stays a signal. Arrows and the like are no keys.
    """
    if not sys.stdin.isatty():
        yield _wait_only
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSANOW)
    try:
        yield lambda within: _read(terminal, within)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _wait_only(within: timedelta) -> str:
    time.sleep(within.total_seconds())
    return ""


def _read(terminal: int, within: timedelta) -> str:
    ready, _, _ = select.select([terminal], [], [], within.total_seconds())
    if not ready:
        return ""
    try:
        chunk = os.read(terminal, CHUNK_BYTES)
    except OSError:
        return QUIT  # The terminal is gone.
    if not chunk:
        return QUIT
    return ESCAPE_SEQUENCE.sub("", chunk.decode("utf-8", "replace"))


Action = Literal["pause", "resume", "requeue"]


@dataclass(frozen=True, slots=True)
class Dialog:
    """Where the conversation stands: what is asked, what was decided, and whether it is over."""

    question: str = ""
    """Open until it is answered with y or n."""
    reply: str = ""
    """Why a key did nothing."""
    action: Action | None = None
    """To be done now."""
    over: bool = False


def press(dialog: Dialog, key: str, picture: Picture | None) -> Dialog:
    """Return where the conversation stands after a key; what is pressed before the first picture only quits."""
    if dialog.question:
        return _answer(dialog, key)
    if key.lower() == "q":
        return Dialog(over=True)
    return _ask_for(key, picture) if picture is not None else Dialog()


def _ask_for(key: str, picture: Picture) -> Dialog:
    match key.lower():
        case "p":
            return Dialog(action="pause")
        case "r":
            return Dialog(action="resume")
        case "e" if picture.total.batches_error:
            return Dialog(f"Put all batches in ERROR ({picture.total.batches_error:,}) back in the queue? (y/n)")
        case "e":
            return Dialog(reply="No batch is in ERROR.")
        case _:
            return Dialog()


def _answer(dialog: Dialog, key: str) -> Dialog:
    """Take y for yes, n and q for no; ask on at anything else."""
    match key.lower():
        case "y":
            return Dialog(action="requeue")
        case "n" | "q":
            return Dialog()
        case _:
            return dialog
