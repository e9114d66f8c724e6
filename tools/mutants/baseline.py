"""The tests without a mutant: which pass, how long they take, and what each of them reaches."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mutants import children
from mutants.job import Job, Task
from mutants.mutant import digest
from mutants.reach import Reach, Reached
from mutants.warm_tests import WarmTests

LIMIT_SECONDS = 7200


@dataclass(slots=True)
class Baseline:
    """What is known of each test, by its id."""

    code: str = ""
    """The digest of the files that are mutated: what tests reach is true as long as these stay as they are."""
    files: dict[str, str] = field(default_factory=dict)
    """The digest of each file of tests that has been run."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of each test that passes."""
    reached: dict[str, Reached] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def forget(self, path: str) -> None:
        """Forget the tests of a file."""
        self.seconds = {test: each for test, each in self.seconds.items() if find_file(test) != path}
        self.reached = {test: each for test, each in self.reached.items() if find_file(test) != path}
        self.failed = [test for test in self.failed if find_file(test) != path]


def find_file(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def run_baseline(job: Job, tests: WarmTests) -> Baseline:
    """Return what is known without a mutant, after a run of the tests whose files are new or have changed."""
    kept = Path(job.baseline)
    baseline = Baseline(**json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else Baseline()
    code = digest(*(Path(job.locate(path)) for path in job.files))
    if baseline.code != code:
        baseline = Baseline(code)
    files = {path: digest(Path(job.locate(path))) for path in sorted({find_file(test) for test in tests.items})}
    changed = [path for path, known in files.items() if baseline.files.get(path) != known]
    for path in changed:
        baseline.forget(path)
    run_files(job, tests, set(changed), baseline)
    baseline.files |= {path: files[path] for path in changed}
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(asdict(baseline)), encoding="utf-8")
    return baseline


def run_files(job: Job, tests: WarmTests, files: set[str], baseline: Baseline) -> None:
    """Run the tests of some files; one that fails is tried once more."""
    chosen = [test for test in tests.items if find_file(test) in files]
    if not chosen:
        return
    ended = children.run_child(lambda say: see_all(job, tests, chosen, say), LIMIT_SECONDS)
    for line in ended.said:
        if "crashed" in line:
            raise pytest.UsageError(line["crashed"])
        if line["failed"] and children.run_child(lambda _, line=line: run_once(tests, line["test"]), 600).status:
            baseline.failed.append(line["test"])
        elif not line["skipped"]:
            baseline.seconds[line["test"]] = line["seconds"]
            baseline.reached[line["test"]] = line["reached"]


def see_all(job: Job, tests: WarmTests, chosen: list[str], say: children.Say) -> None:
    """In a child: run tests and say of each what it reached."""
    reach = Reach([job.locate(path) for path in job.files if path.endswith(".py")])
    if tests.databases is not None:
        tests.execute_in_servers("alter system set track_functions = 'all'", "select pg_reload_conf()")
        reach.see_functions(type(tests.databases), tests.find_logs())
    reach.start()
    for test, after in zip(chosen, [*chosen[1:], None], strict=True):
        failed = tests.run(test, after)
        found: dict[str, Any] = {"test": test, "failed": failed, "skipped": tests.was_skipped}
        say({**found, "seconds": tests.seconds, "reached": reach.take()})


def run_once(tests: WarmTests, test: str) -> None:
    """In a child: run one test; its failure is how the child ends."""
    if failed := tests.run(test):
        raise AssertionError(failed)


def choose_tests(task: Task, baseline: Baseline, job: Job, *, was_imported: bool) -> list[str]:
    """Return the tests that reach a mutant, the quickest first, then those whose processes may.

    What the import has run may matter to any test that reaches its file.
    """
    reached = baseline.reached
    maybe = {test for test in reached if find_file(test) in job.processes}
    if task.path.endswith(".sql"):
        name = f"rowferry.{Path(task.path).stem}"
        near = {test for test, each in reached.items() if name in each or "unknown" in each}
    else:
        file = job.locate(task.path)
        lines = set(range(task.line, task.last_line + 1))
        near = {test for test, each in reached.items() if file in each and (was_imported or lines & set(each[file]))}
    by_time = sorted(baseline.seconds, key=baseline.seconds.__getitem__)
    return [
        *(test for test in by_time if test in near - maybe),
        *(test for test in by_time if test in near & maybe),
        *(test for test in by_time if test in maybe - near),
    ]
