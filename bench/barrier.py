"""Several processes that start together, so that imports and logins are not measured."""

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

    def tell(self, done: int, samples: Sequence[float] = ()) -> None:
        """Print what `start_together` reads."""
        print(json.dumps([self.began, time.monotonic(), done, list(samples)]), flush=True)


@dataclass(frozen=True, slots=True)
class Race:
    """What all processes have done together."""

    done: int
    seconds: float
    """From the first one's begin to the last one's end."""
    samples: list[float]


def start_together(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> Race:
    """Let all commands begin at once, and wait for them.

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
    began, ended, done, samples = zip(*told, strict=True)
    return Race(sum(done), max(ended) - min(began), [sample for of_one in samples for sample in of_one])
