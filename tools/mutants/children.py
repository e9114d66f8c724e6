"""Forks for one mutant: what the child says comes through a pipe, and nothing that it started outlives it."""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h: a signal at the parent's death; orphans below this process become its children."""
LOOK_SECONDS = 0.05

Say = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class ChildResult:
    """What came of a child."""

    said: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0
    in_time: bool = True
    status: int = 0


def adopt_orphans() -> None:
    """Become the parent of all that is left below this process, where the system can: Linux."""
    _control(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have this process killed when its parent, or the thread that started it, ends: Linux."""
    _control(PR_SET_PDEATHSIG, signal.SIGKILL)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def run_child(work: Callable[[Say], None], limit_seconds: float) -> ChildResult:
    """Fork, let the child do the work and return what it said; past the limit it is killed."""
    servers = set(list_children(os.getpid()))
    reader, writer = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setsid()
        end_with_parent()
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            _work_and_exit(work, pipe)
    os.close(writer)
    ended = ChildResult()
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        ended.in_time, ended.status = _read(pipe.fileno(), child, began + limit_seconds, ended.said)
    ended.seconds = time.monotonic() - began
    remove_left(servers)
    return ended


def _work_and_exit(work: Callable[[Say], None], pipe: TextIO) -> None:
    """Work in the child, whose end runs nothing that the parent has registered for its own."""
    status = 1

    def say(what: dict[str, Any]) -> None:
        pipe.write(json.dumps(what) + "\n")
        pipe.flush()

    try:
        work(say)
        status = 0
    except BaseException:  # noqa: BLE001 - nothing of the parent's stack may run here
        with contextlib.suppress(OSError):
            say({"crashed": traceback.format_exc()})
    finally:
        os._exit(status)


def _read(pipe: int, child: int, deadline: float, said: list[dict[str, Any]]) -> tuple[bool, int]:
    """Collect the lines of the pipe until the child ends; return whether that was in time, and its status."""
    rest = b""
    in_time = True
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        while select.select([pipe], [], [], 0 if done else LOOK_SECONDS)[0]:
            part = os.read(pipe, 65536)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            said += map(json.loads, lines)
        if done:
            return in_time, os.waitstatus_to_exitcode(status)
        if in_time and time.monotonic() > deadline:
            in_time = False
            os.kill(child, signal.SIGKILL)


def remove_left(servers: set[int]) -> None:
    """Kill what the child has left: its orphans are children of this process now, which was not so before."""
    for _ in range(100):
        left = [pid for pid in list_children(os.getpid()) if pid not in servers]
        if not left:
            return
        for pid in left:
            for each in (*list_descendants(pid), pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def list_children(parent: int) -> list[int]:
    """Return the ids of the processes whose parent is this one; none where the system has no /proc."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def list_descendants(parent: int) -> list[int]:
    return [each for child in list_children(parent) for each in (*list_descendants(child), child)]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of JSON; none where there is no such file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
