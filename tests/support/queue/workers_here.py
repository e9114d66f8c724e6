"""Commands whose workers work in this process, so that a whole run starts none."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from unittest.mock import patch

from rowferry_cli.migrate import passes
from rowferry_cli.migrate.passes import Workers
from support.processes.cli import Done, Run, run_in_this_process, run_rowferry
from support.queue.at_work import at_work


@dataclass
class WorkersHere:
    """A worker that takes a batch each time the run looks after its workers, which sees every state between."""

    queues: list[str]
    dead_pids: frozenset[int] = frozenset()
    ended_by_mistake: bool = False
    last_words: str = ""
    _until: ExitStack = field(default_factory=ExitStack)
    _take_turn: Callable[[], bool] = lambda: False

    def __enter__(self) -> Self:
        self._take_turn = self._until.enter_context(at_work(16, self.queues))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        return self._until.__exit__(kind, error, at)

    def replace_dead(self) -> int:
        self._take_turn()
        return 0


def run_here(folder: Path, *arguments: str, typed: str = "", **environment: str) -> Done:
    """Run a command to its end in a folder, with all of its workers; `--processes 0` leaves the work to others.

    `worker` itself listens for signals: it gets a process all the same.
    """
    if arguments[:1] == ("worker",):
        return run_rowferry(arguments, {**os.environ, **environment}, folder)
    with working_here():
        return run_in_this_process(arguments, {**os.environ, **environment}, folder, typed=typed)


def run_here_in(folder: Path) -> Run:
    """Return what runs commands so in a folder."""
    return partial(run_here, folder)


@contextmanager
def working_here() -> Iterator[None]:
    """Let each run in this process do the work of its own workers."""
    start_processes = passes.Run.workers

    def workers(run: passes.Run) -> Workers | WorkersHere:
        return start_processes(run) if run.options.processes == 0 else WorkersHere(run.chain.list_names())

    with patch.object(passes.Run, "workers", workers), patch.object(passes, "POLL_INTERVAL", timedelta(0)):
        yield
