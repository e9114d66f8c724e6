"""The command line as a user calls it: its output and its exit status, mostly without the cost of a process."""

import io
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread
from typing import Protocol
from unittest.mock import patch

from rowferry_cli import main
from support.processes.forked import ForkedProcess, may_fork
from support.processes.processes import COMMAND_DEADLINE, run_to_end, wait_for_end

Done = subprocess.CompletedProcess[str]

OWN_PROCESS = frozenset(
    {"worker", "migrate", "cutover", "verify", "revert", "run", "watch", "exporter", "demo", "sweep", "prepare"}
)
"""Commands that start processes, listen for signals or run for long: they get a process of their own."""
ONE_WORKER = {
    f"ROWFERRY_{command}_PROCESSES": "1" for command in ("WORKER", "MIGRATE", "CUTOVER", "VERIFY", "REVERT", "RUN")
}
"""Unless a test says otherwise: each further worker process is an interpreter, which costs 0.7 s of CPU."""


def assert_went_well(done: Done) -> None:
    """Assert status 0, and that a pipe was told nothing on the error stream but what the command is at."""
    assert (done.returncode, list_errors(done)) == (0, [])


def list_errors(done: Done) -> list[str]:
    """Return the lines of the error stream but those that say, on a busy machine, what the command is at."""
    return [line for line in done.stderr.strip().splitlines() if not line.startswith("… ")]


def well(done: Done) -> Done:
    """Return a command that ended with 0."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def refused(done: Done) -> str:
    """Return the one sentence with which a command ended with 2, of a user's mistake."""
    assert (done.returncode, len(list_errors(done))) == (2, 1), done.stdout + done.stderr
    assert done.stderr.startswith(("rowferry: ", "… "))
    return done.stderr


class Run(Protocol):
    """Runs `rowferry <arguments>` to its end, with these variables in its environment as well."""

    def __call__(self, *arguments: str, **environment: str) -> Done: ...


def run_rowferry_in(folder: Path) -> Run:
    """Return what runs commands in a folder, which may hold a plan."""

    def run(*arguments: str, **environment: str) -> Done:
        return run_rowferry(arguments, {**os.environ, **environment}, folder)

    return run


def run_rowferry(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Done:
    """Run a command to its end: in this process where that makes no difference, since imports cost 0.6 s of CPU."""
    is_long = OWN_PROCESS.intersection(arguments[:1]) and tuple(arguments[:2]) != ("watch", "--once")
    if is_long or current_thread() is not main_thread():
        return run_in_own_process(arguments, environment, folder)
    return run_in_this_process(arguments, environment, folder)


def run_in_own_process(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Done:
    """Run a command to its end in a process that has all modules already, where that makes no difference."""
    environment = {**ONE_WORKER, **environment}
    if not may_fork(environment):
        return run_to_end([sys.executable, "-m", "rowferry_cli", *arguments], env=environment, cwd=folder)
    with TemporaryDirectory() as name:
        out, err = Path(name, "out"), Path(name, "err")
        process = ForkedProcess(arguments, environment, folder, out, err)
        try:
            status = wait_for_end(process, deadline=COMMAND_DEADLINE)
        finally:
            process.kill()
        return subprocess.CompletedProcess(list(arguments), status, out.read_text("utf-8"), err.read_text("utf-8"))


def run_in_this_process(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, *, typed: str = "", encoding: str = "utf-8"
) -> Done:
    """Run a command as `python -m rowferry` would, and put back what it changed of the process.

    `typed` is its input. `encoding`: of its output, as PYTHONIOENCODING names it; unless it is UTF-8, a letter for
    each byte is returned.
    """
    out, err = _Output(encoding), _Output(encoding)
    with (
        chdir(folder),
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "argv", ["rowferry", *arguments]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8")),
        redirect_stdout(out),
        redirect_stderr(err),
        _kept_signals(),
        _kept_logging(),
    ):
        status = _end_of_main()
    return subprocess.CompletedProcess(list(arguments), status, out.text(), err.text())


class _Output(io.TextIOWrapper):
    """What a process writes to a pipe."""

    def __init__(self, encoding: str) -> None:
        name, _, errors = encoding.partition(":")
        super().__init__(io.BytesIO(), encoding=name, errors=errors or "strict", write_through=True)

    def text(self) -> str:
        """Return all that was written; where that is not UTF-8, a letter for each byte."""
        self.seek(0)
        if self.encoding != "utf-8":
            self.reconfigure(encoding="latin-1")
        return self.read()


def _end_of_main() -> int:
    """Return the exit status that the command ends with."""
    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(ended.code)
            return 1
        return ended.code or 0
    except Exception:  # noqa: BLE001 - as the interpreter does at the end of a process
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _kept_signals() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _kept_logging() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (None, "rowferry", "rowferry_worker", "rowferry_enqueue")]
    before = [(list(logger.handlers), logger.level) for logger in loggers]
    try:
        yield
    finally:
        for logger, (handlers, level) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.setLevel(level)
