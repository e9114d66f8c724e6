"""Commands in processes that begin with all modules imported: forked from a server that has nothing else to do.

To import them costs each process 0.5 s of CPU, and the tests start hundreds.
"""

import atexit
import gc
import multiprocessing
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from threading import RLock

import pytest

MODULES = (
    "boto3.session",
    "rowferry_cli",
    *(f"rowferry_cli.{command}.command" for command in ("cutover", "migrate", "watch")),
    *(f"rowferry_cli.work.{command}" for command in ("revert", "run", "verify", "worker")),
    *(f"rowferry_queues.{queue}.perform" for queue in ("inspect", "migrate", "parts", "revert", "tag", "verify")),
    "rowferry_worker.daemon",
    "rowferry_worker.supervisor.supervisor",
    "_pytest.config",  # where pytest is not run by xdist, each process imports its script
)
"""What the server imports before its first child."""

EARLY = (
    *("PYTHON", "LD_", "MALLOC_", "LC_", "LANG"),
    *("ROWFERRY_TEST_", "ROWFERRY_PROCESS_", "ROWFERRY_SUPERVISOR_", "PROMETHEUS_"),
)
"""How variables begin that are read before the first module of rowferry is; PYTHONPATH is heeded here as well."""
HOOK = "sitecustomize.py"
"""What Python runs before all else where it finds one."""

_ENVIRONMENT = dict(os.environ)
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(list(MODULES))
_turn = RLock()
"""Starting a process and asking for its end read the same pipes: two threads would take each other's words."""


class ForkedProcess:
    """`rowferry <arguments>` in a process of its own, as far as tests use `subprocess.Popen`.

    Unlike that of a new interpreter its exit status is 1 where a KeyboardInterrupt ends it.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, out: Path, err: Path
    ) -> None:
        """Start it in a folder, with its output in files, and with nothing to read."""
        for file in (out, err):
            file.write_bytes(b"")
        chosen = (tuple(arguments), dict(environment), folder, out, err)
        with _turn:
            _start_server()
            self._process = _forks.Process(target=_run, args=chosen, daemon=True)
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit status, the negative number of the signal that ended it, or None while it runs."""
        with _turn:
            return self._process.exitcode

    def wait(self) -> int:
        while (status := self.poll()) is None:
            wait([self._process.sentinel], timeout=1)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended in between
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _start_server() -> None:
    """Start it once, without the modules that a test has told the processes that it starts."""
    with pytest.MonkeyPatch.context() as patch:  # which changes this one variable: other threads read the environment
        patch.setenv("PYTHONPATH", _ENVIRONMENT.get("PYTHONPATH", ""))
        forkserver.ensure_running()


def may_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a forked process behaves like a new one: no variable has changed that is read at its start."""
    changed = {name for name, _ in set(environment.items()) ^ set(_ENVIRONMENT.items())}
    return not any(name.startswith(EARLY) and name != "PYTHONPATH" for name in changed)


def _run(arguments: tuple[str, ...], environment: dict[str, str], folder: Path, *files: Path) -> None:
    """Run the command in the child, where it finds what a new process would."""
    gc.freeze()  # else the first collection, of a worker at its start, goes through all that the server has imported
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    for number, file in enumerate(files, start=1):
        output = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.dup2(output, number)
        os.close(output)
    os.chdir(folder)
    sys.argv = ["rowferry", *arguments]
    _heed_python_path(environment.get("PYTHONPATH", ""))
    from rowferry_cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which multiprocessing leaves out


def _heed_python_path(path: str) -> None:
    """Let modules be found there, and run what Python would have run first: what it changes is imported already."""
    folders = [name for name in path.split(os.pathsep) if name and name not in sys.path]
    sys.path[:0] = folders
    hook = next((Path(name, HOOK) for name in folders if Path(name, HOOK).exists()), None)
    if hook is not None:
        runpy.run_path(str(hook))
