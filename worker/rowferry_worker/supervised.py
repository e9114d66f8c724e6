"""What a worker process knows of the supervisor that started it (`--processes`); nothing when it was started alone."""

import os

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
