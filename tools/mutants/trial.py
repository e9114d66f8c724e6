"""One mutant before its tests: put in place, and taken away again."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from mutants import children, swap
from mutants.baseline import Baseline, choose_tests
from mutants.job import Job, Task
from mutants.warm_tests import WarmTests

PATIENCE_SECONDS = 60
SLOWER = 10
"""A mutant may take this many times as long as its tests take without it, and 60 s more."""
COLD_LIMIT_SECONDS = 7200
FAILED = 3
"""The exit status of a child in which a test has failed."""

Install = Callable[[], object]
Verdict = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """The tests, warm, and what they do without a mutant."""

    job: Job
    tests: WarmTests
    baseline: Baseline

    def judge(self, task: Task) -> Verdict:
        """Return the verdict on a mutant, and the test that killed it."""
        if task.imported:
            return self.run_tests(lambda: None, task.imported)
        with ExitStack() as until:
            if task.path.endswith(".sql"):
                try:
                    install = self._replace_function(task, until)
                except psycopg.Error as error:
                    return _verdict("invalid", str(error))
                return self.run_tests(install, choose_tests(task, self.baseline, self.job, was_imported=False))
            return self._judge_python(task, until)

    def run_tests(self, install: Install, chosen: Sequence[str]) -> Verdict:
        """Run tests until one fails twice, each time in a new child: one failure may be the machine's."""
        seconds, left = 0.0, list(chosen)
        while left:
            ended = children.run_child(lambda say, left=left: self._run(say, install, left), self._limit(left))
            seconds += ended.seconds
            if ended.in_time and not ended.status:
                break
            passed = sum("passed" in line for line in ended.said)
            test, left = left[passed], left[passed + 1 :]
            again = children.run_child(lambda say, test=test: self._run(say, install, [test]), self._limit([test]))
            seconds += again.seconds
            if again.status or not again.in_time:
                ran = len(chosen) - len(left)
                return _verdict("killed" if again.in_time else "timeout", test, ran=ran, seconds=seconds)
        return _verdict("survived", ran=len(chosen), seconds=seconds)

    def _run(self, say: children.Say, install: Install, tests: Sequence[str]) -> None:
        """In a child: run tests until one fails."""
        install()
        for test, after in zip(tests, [*tests[1:], None], strict=True):
            if self.tests.run(test, after):
                os._exit(FAILED)
            say({"passed": test})

    def _limit(self, tests: Sequence[str]) -> float:
        return PATIENCE_SECONDS + SLOWER * sum(self.baseline.seconds[test] for test in tests)

    def _replace_function(self, task: Task, until: ExitStack) -> Install:
        """Replace a function in the template of all databases, until it is put back. Raises psycopg.Error."""
        before = Path(self.job.locate(task.path)).read_text(encoding="utf-8")
        self.tests.execute_in_servers(task.text, template=True)
        until.callback(self.tests.execute_in_servers, before, template=True)
        folder = Path(until.enter_context(readable_folder()))
        copy = swap.copy_sql(Path(self.job.root), task.path, task.text, folder)
        return lambda: swap.use_sql(copy)

    def _judge_python(self, task: Task, until: ExitStack) -> Verdict:
        """Swap the code of functions in each child; what is run by an import needs a new process."""
        file = self.job.locate(task.path)
        try:
            swaps = swap.find_swaps(file, Path(file).read_text(encoding="utf-8"), task.text)
        except SyntaxError as error:
            return _verdict("invalid", str(error))
        text = Path(until.enter_context(readable_folder()), "mutant.py")
        text.write_text(task.text, encoding="utf-8")
        variable = swap.tell_processes(task.path, file, text)
        chosen = choose_tests(task, self.baseline, self.job, was_imported=swaps is None)
        if swaps is None:
            return self._judge_import(chosen, variable, text.parent)
        return self.run_tests(lambda: (os.environ.update(variable), swap.swap_code(file, swaps)), chosen)

    def _judge_import(self, chosen: list[str], variable: dict[str, str], folder: Path) -> Verdict:
        """Run the tests in a stand of its own, which imports the mutant."""
        if not chosen:
            return _verdict("survived")
        results, path = folder / "results", folder / "job.json"
        task = Task(place="", path="", line=0, last_line=0, text="", imported=tuple(chosen))
        job = replace(self.job, tests=chosen, processes=[], results=str(results), leaves_out_failing=True, tasks=[task])
        job.write(path)
        before = set(children.list_children(os.getpid()))
        command = [sys.executable, "-m", "mutants.stand", str(path)]
        environment = {**os.environ, **variable}
        subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL, timeout=COLD_LIMIT_SECONDS)
        children.remove_left(before)
        for line in children.read_lines(results):
            if "verdict" in line:
                return {name: value for name, value in line.items() if name != "place"}
        return _verdict("killed", "the import")


def _verdict(verdict: str, by: str = "", *, ran: int = 0, seconds: float = 0) -> Verdict:
    return {"verdict": verdict, "by": by, "ran": ran, "seconds": seconds}


def readable_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that other accounts may enter too, as tests let some processes run as `nobody`."""
    folder = tempfile.TemporaryDirectory(prefix="mutant-")
    Path(folder.name).chmod(0o755)
    return folder
