"""Tells systemd, where it runs the worker, that the worker is ready, alive or stopping: sd_notify(3) in a few lines."""

import os
import socket
import time
from datetime import timedelta
from threading import get_ident

LONGEST_TURN = timedelta(minutes=10)
"""No slot is this long in a turn without an answer from S3 in it: requests have deadlines, and so has the database."""


def notify(*states: str) -> bool:
    """Send states such as `READY=1` to the service manager; return whether there is one that took them.

    Never raises: a worker does not depend on whoever watches it.
    """
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return False
    address = "\0" + path[1:] if path.startswith("@") else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.settimeout(1.0)
            channel.sendto("\n".join(states).encode(), address)
    except OSError:
        return False
    return True


class Pulse:
    """When each slot last began a turn; a slot that hangs in one is what a watchdog is for, a database away is not."""

    def __init__(self) -> None:
        """Begin without slots."""
        self._turns: dict[int, float] = {}

    def begin_turn(self) -> None:
        """Say that the calling slot begins a turn."""
        self._turns[get_ident()] = time.monotonic()

    def end(self) -> None:
        """Say that the calling slot takes no more turns."""
        self._turns.pop(get_ident(), None)

    def is_steady(self, longest_turn: timedelta = LONGEST_TURN) -> bool:
        """Return whether every slot began its turn within `longest_turn`; a worker without slots is steady."""
        earliest = time.monotonic() - longest_turn.total_seconds()
        return all(began >= earliest for began in list(self._turns.values()))


PROCESS_NUMBER = os.environ.get("ROWFERRY_PROCESS_NUMBER", "")
"""From "1"; the process that replaces a dead one has its number. Empty: nobody supervises this process."""

NO_DATABASE = 75
"""Exit status of a supervised process that finds no database to begin with (EX_TEMPFAIL of sysexits.h): try again."""

_SUPERVISOR = os.environ.get("ROWFERRY_SUPERVISOR_PID", "")


def supervised_environment(number: int) -> dict[str, str]:
    """Return what a supervisor adds to the environment of a process that it starts."""
    return {"ROWFERRY_PROCESS_NUMBER": str(number), "ROWFERRY_SUPERVISOR_PID": str(os.getpid())}


def is_orphan() -> bool:
    """Return whether the supervisor has died: nobody would pass a signal on any more."""
    return bool(_SUPERVISOR) and os.getppid() != int(_SUPERVISOR)
