"""One running `rowferry worker` of one process, unless told otherwise; its log in a file."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from support.processes.forked import ForkedProcess, may_fork
from support.processes.processes import COMMAND_DEADLINE, DEADLINE, wait_for, wait_for_end

Started = subprocess.Popen[bytes] | ForkedProcess

RUNNING: list[Started] = []
"""The processes of all workers that no test has given up yet."""


class WorkerProcess:
    """Started when it is made; `kill` is always allowed."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log_path: Path, *, own_interpreter: bool = False
    ) -> None:
        """Start it; `own_interpreter`: as a user does, with a command line of its own."""
        self._log_path = log_path
        chosen = ["worker", "--log-format", "json", *arguments]
        environment = {"ROWFERRY_WORKER_PROCESSES": "1", **environment}
        forks = not own_interpreter and may_fork(environment)
        self.process = start_worker(chosen, environment, log_path, forks=forks)
        RUNNING.append(self.process)

    @property
    def log(self) -> str:
        """Return the lines that the worker has written to their end: another may be on its way."""
        return self._log_path.read_bytes().rpartition(b"\n")[0].decode("utf-8")

    def messages(self) -> list[str]:
        """Return the fixed messages of the log, in order."""
        return [json.loads(line)["message"] for line in self.log.splitlines() if line.startswith("{")]

    def heard_signals(self) -> int:
        """Return how many signals the worker has said it heard."""
        heard = {"shutting down after the current batches", "releasing claimed batches"}
        return sum(message in heard for message in self.messages())

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Return the exit status."""
        return wait_for_end(self.process, deadline=COMMAND_DEADLINE)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process in RUNNING:
            RUNNING.remove(self.process)


def start_worker(arguments: Sequence[str], environment: Mapping[str, str], log_path: Path, *, forks: bool) -> Started:
    """Start it forked, which is quick, or with an interpreter of its own."""
    if forks:
        return ForkedProcess(arguments, environment, Path.cwd(), log_path, log_path)
    command = [sys.executable, "-m", "rowferry_cli", *arguments]
    with log_path.open("wb") as log:
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def eventually(condition: Callable[[], object], *, deadline: timedelta = DEADLINE) -> None:
    """Return once the condition holds, which the running workers make come true; fail as soon as all have ended."""
    wait_for(condition, deadline=deadline, by=[worker for worker in RUNNING if worker.poll() is None])
