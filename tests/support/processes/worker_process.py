"""One running `rowferry worker` of one process, unless told otherwise; its log in a file."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from support.processes.processes import DEADLINE, wait_for


class WorkerProcess:
    """Started when it is made; `kill` is always allowed."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log_path: Path) -> None:
        self._log_path = log_path
        with log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rowferry_cli", "worker", "--log-format", "json", *arguments],
                env={"ROWFERRY_WORKER_PROCESSES": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

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
        return self.process.wait(DEADLINE.total_seconds())

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def eventually(condition: Callable[[], object]) -> None:
    """Return once the condition holds, which may take worker processes their time on a busy machine."""
    wait_for(condition)
