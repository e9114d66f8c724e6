"""A real terminal without a person: a pseudo-terminal whose keys a test presses and whose screen it reads."""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread

from support.processes.processes import wait_for, wait_for_end

TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "rowferry_cli", *sys.argv[1:]])
"""
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][B0]?|\r")
HOME = "\x1b[H"
ALTERNATE_SCREEN, ORDINARY_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


class Terminal:
    """A running `rowferry` command and the terminal that it believes to be on."""

    def __init__(self, arguments: tuple[str, ...], environment: Mapping[str, str], size: tuple[int, int]) -> None:
        self._master, self._slave = os.openpty()
        self.resize(*size)
        self.settings_before = termios.tcgetattr(self._slave)
        self._output = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *arguments],
            env={**without_size(os.environ), "TERM": "xterm-256color", **environment},
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while piece := os.read(self._master, 65536):
                self._output += piece

    @property
    def output(self) -> str:
        """Return all that was ever written to it."""
        return self._output.decode("utf-8", "replace")

    @property
    def settings(self) -> list[object]:
        return termios.tcgetattr(self._slave)

    def frames(self) -> list[str]:
        """Return all frames so far, without their colours. Of the last one the end may be on its way."""
        return [CONTROLS.sub("", frame) for frame in self.output.split(HOME)]

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, *words: str, gone: str | None = None) -> str:
        """Return the screen once it shows all these words, and does not show `gone`, which takes a frame to its end."""
        seen = ""

        def shows() -> bool:
            nonlocal seen
            frames = self.frames()
            assert self.process.poll() is None, self.output
            seen = frames[-1]
            looked_at = frames[-1:] if gone is None else frames[-2:]
            return all(
                all(word in frame for word in words) and (gone is None or gone not in frame) for frame in looked_at
            )

        try:
            wait_for(shows)
        except AssertionError as error:
            raise AssertionError(f"{error}; on the screen was:\n{seen}") from None
        return seen

    def wait(self) -> int:
        """Return the exit status."""
        return wait_for_end(self.process)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._slave)
        self._reader.join(100)
        os.close(self._master)


def without_size(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the size that the tests' own terminal may have put into it."""
    return {name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}


@contextmanager
def in_terminal(*arguments: str, size: tuple[int, int] = (80, 24), **environment: str) -> Iterator[Terminal]:
    """Yield a `rowferry` command that runs in a terminal of this width and height."""
    terminal = Terminal(arguments, environment, size)
    try:
        yield terminal
    finally:
        terminal.close()
