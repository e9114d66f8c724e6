"""Commands in processes that begin with all modules imported: forked from a server that has nothing else to do.

To import them costs each process 0.5 s of CPU, and the tests start hundreds.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from unittest.mock import patch

MODULES = (
    "boto3.session",
    "rowferry_cli",
    "rowferry_queues.migrate.perform",
    "rowferry_worker.batch.run",
    "rowferry_worker.supervisor",
    "support.processes.forked",
)
"""What the server imports before its first child."""

EARLY = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG", "ROWFERRY_TEST_")
"""How variables begin that are read before the first module of rowferry is; PYTHONPATH is heeded here as well."""
HOOK = "sitecustomize.py"
"""What Python runs before all else where it finds one."""

_AT_FIRST = dict(os.environ)
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(list(MODULES))


class ForkedProcess:
    """`rowferry <arguments>` in a process of its own, as far as tests use `subprocess.Popen`; ends as that does."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, out: Path, err: Path
    ) -> None:
        """Start it in a folder, with its output in files, and with nothing to read."""
        for file in (out, err):
            file.write_bytes(b"")
        chosen = (tuple(arguments), dict(environment), folder, out, err)
        _start_server()
        self._process = _forks.Process(target=_run, args=chosen, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return the exit status, the negative number of the signal that ended it, or None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _start_server() -> None:
    """Start it where it does not run, without the modules that a test has told the processes that it starts."""
    of_test = os.environ.get("PYTHONPATH")
    if of_test == _AT_FIRST.get("PYTHONPATH"):
        forkserver.ensure_running()
        return
    with patch.dict(os.environ, {"PYTHONPATH": _AT_FIRST.get("PYTHONPATH", "")}):
        forkserver.ensure_running()


def may_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a forked process would be as one of its own: it finds no variable that the interpreter reads."""
    changed = {name for name, _ in set(environment.items()) ^ set(_AT_FIRST.items())}
    return not any(name.startswith(EARLY) and name != "PYTHONPATH" for name in changed)


def _run(arguments: tuple[str, ...], environment: dict[str, str], folder: Path, *files: Path) -> None:
    """Be the process: what a new one would find, and then the command."""
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

    main()


def _heed_python_path(path: str) -> None:
    """Let modules be found there, and run what Python would have run first: what it changes is imported already."""
    folders = [name for name in path.split(os.pathsep) if name and name not in sys.path]
    sys.path[:0] = folders
    hook = next((Path(name, HOOK) for name in folders if Path(name, HOOK).exists()), None)
    if hook is not None:
        runpy.run_path(str(hook))
