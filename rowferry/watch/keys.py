"""Single keys from a terminal, as they are pressed; nothing where there is no terminal."""

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta

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
