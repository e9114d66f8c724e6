"""The process around a worker: systemd's notifications (sd_notify(3) in a few lines) and the supervisor."""

import os
import socket
import time
from contextlib import suppress
from datetime import timedelta
from threading import get_ident

MAX_TURN = timedelta(minutes=10)
"""No slot goes this long without a new turn or an S3 response: S3 requests and SQL statements have deadlines."""


def notify(*states: str) -> bool:
    """Send states such as `READY=1` to the supervisor and the service manager. Never raises.

    Return whether a service manager took them.
    """
    if _PIPE in os.environ:
        _tell_supervisor(*states)
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


class SlotWatchdog:
    """Detects a slot that hangs. A slot that waits for a database which is down still makes turns."""

    def __init__(self) -> None:
        self._turns: dict[int, float] = {}

    def begin_turn(self) -> None:
        """Note that the calling slot begins a turn of its loop."""
        self._turns[get_ident()] = time.monotonic()

    def remove(self) -> None:
        """Stop watching the calling slot."""
        self._turns.pop(get_ident(), None)

    def is_progressing(self, max_turn: timedelta = MAX_TURN) -> bool:
        """Return whether every slot began its turn within `max_turn`; True without slots."""
        earliest = time.monotonic() - max_turn.total_seconds()
        return all(began >= earliest for began in list(self._turns.values()))


NO_DATABASE = 75
"""Exit status of a supervised process that finds no database at its start (EX_TEMPFAIL of sysexits.h): try again."""

_NUMBER, _COUNT = "ROWFERRY_PROCESS_NUMBER", "ROWFERRY_PROCESS_COUNT"
_SUPERVISOR, _PIPE = "ROWFERRY_SUPERVISOR_PID", "ROWFERRY_SUPERVISOR_PIPE"

HOST_NAME = "ROWFERRY_HOST_NAME"
"""The variable that names this host for all processes of a worker, instead of the system."""

REASON = "REASON="
"""How the state begins that says why a supervised process ends."""


def supervised_environment(number: int, count: int, pipe: int) -> dict[str, str]:
    """Return the variables that a supervisor adds for process `number` of `count`; `pipe`: where it reports to."""
    return {_NUMBER: str(number), _COUNT: str(count), _SUPERVISOR: str(os.getpid()), _PIPE: str(pipe)}


def process_number() -> str:
    """Return the number of this process; from "1"; its replacement has the same. Empty: it has no supervisor."""
    return os.environ.get(_NUMBER, "")


def count_processes() -> int:
    """Return how many processes this worker has, this one included: they share the machine."""
    return int(os.environ.get(_COUNT, "1"))


def name_host() -> str:
    """Return what workers, metrics and views call this host."""
    return os.environ.get(HOST_NAME) or socket.gethostname()


def tell_reason(reason: str) -> None:
    """Tell the supervisor, in one sentence, why this process ends."""
    _tell_supervisor(REASON + " ".join(reason.split()))


def _tell_supervisor(*states: str) -> None:
    pipe = int(os.environ[_PIPE])
    with suppress(OSError):  # it has died, or has not read for long
        os.set_blocking(pipe, False)
        os.write(pipe, "".join(f"{state}\n" for state in states).encode())


def is_orphan() -> bool:
    """Return whether the supervisor has died, so that no signal would be passed on any more."""
    return os.getppid() != int(os.environ.get(_SUPERVISOR) or os.getppid())
