"""Several processes that begin at one word, so that nobody's imports and logins are measured."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GO = "go\n"


def wait_for_start() -> float:
    """Say that this process is ready, wait for the word, and return when it came, by time.monotonic()."""
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Run:
    """What one process does between the word and its end."""

    began: float

    def tell(self, done: int) -> None:
        """Print what `start_together` reads."""
        print(json.dumps([self.began, time.monotonic(), done]), flush=True)


def start_together(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> tuple[int, float]:
    """Let all commands begin at once; return what they have done together, and the seconds from the first to the last.

    Raises AssertionError where one of them ends without having told.
    """
    processes = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", f"{process.args} did not come about"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(GO)
            process.stdin.flush()
        told = [json.loads(process.communicate(timeout=600)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    began, ended, done = zip(*told, strict=True)
    return sum(done), max(ended) - min(began)
