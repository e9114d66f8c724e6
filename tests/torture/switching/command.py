"""`rowferry cutover` as a process that may be interrupted at a chosen stage."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from support.processes.clock import LoadClock
from torture.world import World

DEADLINE = timedelta(seconds=400)
WORK = "select count(*)::int from rowferry.batch_queue where status = 'INIT' and queue_name = %s"

Stage = Callable[[World, str], bool]
"""Whether the moment to interrupt the command has come, by the queue and by what it has printed so far."""


def has_work(queue: str) -> Stage:
    return lambda world, _: world.ask(WORK, queue) > 0


STAGES: Mapping[str, Stage] = {
    "at its start": lambda *_: True,
    "in its first pass": has_work("migrate"),
    "after its first pass": lambda _, said: '"pass"' in said,
}
FINISHING: Mapping[str, Stage] = {
    "at the start of --finish": lambda *_: True,
    "in the last pass": has_work("migrate"),
    "after the last pass": lambda _, said: '"pass"' in said,
    "in the verification": has_work("verify"),
}


@dataclass(frozen=True, slots=True)
class CutoverEnd:
    """How the command ended, and what it printed on stdout and stderr."""

    was_interrupted: bool
    status: int
    said: str
    complained: str


def cut_over(world: World, *arguments: str, stage: Stage | None = None, number: int = signal.SIGKILL) -> CutoverEnd:
    """Run the command, and send it a signal as soon as `stage` has come. Raises AssertionError when it does not end."""
    command = [sys.executable, "-m", "rowferry_cli", "cutover", "--json", "--yes", "--processes=0", "--batch-size=25"]
    out, err = world.folder / "cutover.out", world.folder / "cutover.err"
    environment = {**os.environ, **world.migration.environment}
    clock, was_interrupted = LoadClock(), False
    with (
        out.open("wb") as said,
        err.open("wb") as complained,
        subprocess.Popen(
            [*command, *arguments],
            env=environment,
            cwd=world.folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
        ) as process,
    ):
        while process.poll() is None:
            if stage is not None and stage(world, out.read_text()):
                process.send_signal(number)
                stage, was_interrupted = None, True
            if clock.look() > DEADLINE.total_seconds():
                process.kill()
                raise AssertionError(f"cutover {arguments} did not end: {out.read_text()}{err.read_text()[-2000:]}")
            time.sleep(0.02)
    return CutoverEnd(was_interrupted, process.returncode, out.read_text(), err.read_text())
