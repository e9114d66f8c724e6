"""The warm process of one module: pytest with the nearest tests collected and their servers started, and a fork a run.

Run as `python -m mutants.stand JOB`, the file of a `Job`; what it finds goes as lines of JSON to the file that the job
names.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mutants import children, swap
from mutants.reach import Reach, Reached

SERVERS = {
    "moto": {"moto", "s3_server", "any_migration"},
    "versitygw": {"versitygw", "s3_server", "any_migration", "log"},
    "database_servers": {"database_servers"},
}
"""Fixtures of a whole session that are started once, before the forks, and the fixtures that lead to them."""

PATIENCE_SECONDS = 60
SLOWER = 10
"""A mutant may take this many times as long as the tests take without it, and 60 s more."""
BASELINE_SECONDS = 7200


@dataclass(frozen=True, slots=True)
class Job:
    """What a stand does."""

    root: str
    files: list[str]
    tests: list[str]
    processes: list[str]
    results: str
    baseline: str
    """The file that keeps what was found without a mutant."""
    leaves_out_failing: bool
    mutants: list[dict[str, Any]]
    """`place`, `path`, `line`, `last_line`, `text` of each."""


class Stand:
    """A plugin of pytest that runs the collected tests in its own way."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._reports: list[pytest.TestReport] = []
        self._keeper: pytest.Function | None = None
        self._databases: Any = None
        self._items: dict[str, pytest.Item] = {}

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Set the profile after every conftest.py has set its own: a mutant's counterexample need not be shrunk."""
        from hypothesis import Phase, settings  # noqa: PLC0415 - its own plugin has to come first

        del collector
        if settings.get_current_profile_name() != "mutants":
            phases = (Phase.explicit, Phase.generate)
            settings.register_profile(
                "mutants", settings(deadline=None, derandomize=True, database=None, phases=phases)
            )
            settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        if session.testsfailed or not session.items:
            self._write({"broken": f"{session.testsfailed} files of tests cannot be collected"})
            return True
        self._warm(session)
        baseline = self._run_baseline()
        if baseline["failed"] and not self.job.leaves_out_failing:
            self._write({"broken": "its tests fail without a mutant", "failed": baseline["failed"]})
            return True
        self._write({"baseline": len(baseline["seconds"]), "failed": baseline["failed"]})
        for mutant in self.job.mutants:
            self._write({"place": mutant["place"], **self._try(mutant, baseline)})
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def _write(self, line: dict[str, Any]) -> None:
        with Path(self.job.results).open("a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")

    def _warm(self, session: pytest.Session) -> None:
        """Start the servers that these tests need, and nothing that has a thread."""
        children.adopt_orphans()
        asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
        needed = [name for name, leads in SERVERS.items() if asked & leads]
        if not needed:
            return
        common = set(session.items[0].listchain())
        for item in session.items:
            common &= set(item.listchain())
        parent = max(common, key=lambda node: len(node.listchain()))
        while isinstance(parent, pytest.Module | pytest.Class):
            parent = parent.parent

        def keep(request: pytest.FixtureRequest) -> None:
            for name in needed:
                try:
                    found = request.getfixturevalue(name)
                except pytest.skip.Exception:
                    continue
                if name == "database_servers":
                    self._databases = found
                    with found.fresh_database(sys.modules["support.postgres.servers"].POSTGRES):
                        pass

        self._keeper = pytest.Function.from_parent(parent, name="keeps the servers", callobj=keep)  # type: ignore[arg-type]
        failed = self._run_item(self._keeper, session.items[0])
        if failed:
            raise pytest.UsageError(f"The servers do not start:\n{failed}")

    def _run_item(self, item: pytest.Item, after: pytest.Item | None) -> str:
        """Run one test; return how it failed, or nothing. The servers stay for the one after it, or for the keeper."""
        self._reports.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after or self._keeper)
        return "\n".join(report.longreprtext for report in self._reports if report.failed)

    def _was_skipped(self) -> bool:
        return any(report.skipped for report in self._reports)

    # Without a mutant

    def _run_baseline(self) -> dict[str, Any]:
        """Return the seconds of each test that passes, what it reaches, and the tests that fail twice."""
        kept = Path(self.job.baseline)
        if kept.exists():
            return json.loads(kept.read_text(encoding="utf-8"))
        ended = children.run_child(self._see_all, BASELINE_SECONDS)
        found: dict[str, Any] = {"seconds": {}, "reached": {}, "failed": []}
        for line in ended.said:
            if "crashed" in line:
                raise pytest.UsageError(line["crashed"])
            if line["failed"] and children.run_child(lambda say, line=line: self._see(say, line["test"]), 600).status:
                found["failed"].append(line["test"])
            elif not line["skipped"]:
                found["seconds"][line["test"]] = line["seconds"]
                found["reached"][line["test"]] = line["reached"]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        return found

    def _see_all(self, say: children.Say) -> None:
        reach = Reach([str(Path(self.job.root, path)) for path in self.job.files if path.endswith(".py")])
        if self._databases is not None:
            self._count_calls()
            reach.see_functions(type(self._databases))
        reach.start()
        items = list(self._items.values())
        for item, after in zip(items, [*items[1:], None], strict=True):
            failed = self._run_item(item, after)
            seconds = sum(report.duration for report in self._reports)
            reached: Reached = reach.take()
            say({
                "test": item.nodeid, "failed": failed, "skipped": self._was_skipped(), "seconds": seconds,
                "reached": reached,
            })  # fmt: skip

    def _see(self, say: children.Say, test: str) -> None:
        """Run one test; a failure is what the child ends with."""
        if failed := self._run_item(self._items[test], None):
            raise AssertionError(failed)
        del say

    def _count_calls(self) -> None:
        for server in self._databases._servers.values():  # noqa: SLF001 - the fixture has no other way to its servers
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                connection.execute("alter system set track_functions = 'all'")
                connection.execute("select pg_reload_conf()")

    # With a mutant

    def _try(self, mutant: dict[str, Any], baseline: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict on a mutant, and the test that killed it."""
        if "cold" in mutant:
            return self._run_tests(lambda: None, mutant["cold"], baseline)
        with ExitStack() as until:
            try:
                install = self._prepare(mutant, until)
            except (psycopg.Error, SyntaxError) as error:
                return {"verdict": "invalid", "by": str(error), "ran": 0, "seconds": 0}
            chosen = choose_tests(mutant, baseline, self.job, was_imported=install is None)
            if install is None:
                return self._try_cold(chosen, until)
            return self._run_tests(install, chosen, baseline)

    def _run_tests(self, install: Any, chosen: list[str], baseline: dict[str, Any]) -> dict[str, Any]:
        """Run tests until one fails twice in a row, each time in a new child."""
        seconds, left = 0.0, list(chosen)
        while left:
            limit = PATIENCE_SECONDS + SLOWER * sum(baseline["seconds"][test] for test in left)
            ended = children.run_child(lambda say, left=left: self._run_until_failure(say, install, left), limit)
            seconds += ended.seconds
            passed = sum("passed" in line for line in ended.said)
            if ended.in_time and not ended.status:
                break
            test = left[passed]
            limit = PATIENCE_SECONDS + SLOWER * baseline["seconds"][test]
            again = children.run_child(lambda say, test=test: self._run_until_failure(say, install, [test]), limit)
            seconds += again.seconds
            if again.status or not again.in_time:
                verdict = "killed" if again.in_time else "timeout"
                return {"verdict": verdict, "by": test, "ran": len(chosen) - len(left) + passed + 1, "seconds": seconds}
            left = left[passed + 1 :]
        return {"verdict": "survived", "by": "", "ran": len(chosen), "seconds": seconds}

    def _run_until_failure(self, say: children.Say, install: Any, tests: Sequence[str]) -> None:
        install()
        for test, after in zip(tests, [*tests[1:], None], strict=True):
            failed = self._run_item(self._items[test], self._items[after] if after else None)
            if failed:
                say({"failed": test})
                os._exit(3)
            say({"passed": test})

    def _prepare(self, mutant: dict[str, Any], until: ExitStack) -> Any:
        """Return what installs a mutant in a child; None where the code was imported already."""
        if mutant["path"].endswith(".sql"):
            return self._prepare_sql(mutant, until)
        file = str(Path(self.job.root, mutant["path"]))
        before = Path(file).read_text(encoding="utf-8")
        swaps = swap.find_swaps(file, before, mutant["text"])
        text = Path(until.enter_context(tempfile.TemporaryDirectory()), "mutant.py")
        text.write_text(mutant["text"], encoding="utf-8")
        text.chmod(0o644)
        text.parent.chmod(0o755)

        def install() -> None:
            swap.tell_processes(mutant["path"], file, text)
            if swaps is not None:
                swap.swap_code(file, swaps)

        if swaps is None:
            until.callback(os.environ.pop, "ROWFERRY_TEST_MUTANT", None)
            install()
            return None
        return install

    def _prepare_sql(self, mutant: dict[str, Any], until: ExitStack) -> Any:
        """Replace the function in the template, until it is put back."""
        servers = sys.modules["support.postgres.servers"]
        before = Path(self.job.root, mutant["path"]).read_text(encoding="utf-8")
        for server in self._databases._servers.values():  # noqa: SLF001
            dsn = server.dsn(servers.TEMPLATE)
            apply(dsn, mutant["text"])
            until.callback(apply, dsn, before)
        folder = Path(until.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        copy = until.enter_context(swap.copied_sql(Path(self.job.root), mutant["path"], mutant["text"], folder))
        return lambda: swap.use_sql(copy)

    def _try_cold(self, chosen: list[str], until: ExitStack) -> dict[str, Any]:
        """Run the tests in a new process, which imports the mutant."""
        if not chosen:
            return {"verdict": "survived", "by": "", "ran": 0, "seconds": 0}
        folder = Path(until.enter_context(tempfile.TemporaryDirectory()))
        results, path = folder / "results", folder / "job.json"
        job = replace(self.job, tests=chosen, processes=[], results=str(results), leaves_out_failing=True)
        job = replace(job, mutants=[{"place": "cold", "cold": chosen}])
        path.write_text(json.dumps(asdict(job)), encoding="utf-8")
        servers = set(children.list_children(os.getpid()))
        command = [sys.executable, "-m", "mutants.stand", str(path)]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL, timeout=BASELINE_SECONDS)
        children.remove_left(servers)
        lines = map(json.loads, results.read_text(encoding="utf-8").splitlines() if results.exists() else ())
        found = next((line for line in lines if "verdict" in line), None)
        return found or {"verdict": "killed", "by": "the import", "ran": 0, "seconds": 0}


def apply(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def choose_tests(mutant: dict[str, Any], baseline: dict[str, Any], job: Job, *, was_imported: bool) -> list[str]:
    """Return the tests that reach a mutant, the quickest first, then those whose processes may.

    What the import has run, any test may need that reaches its file.
    """
    reached: dict[str, Reached] = baseline["reached"]
    processes = {test for test in reached if test.partition("::")[0] in job.processes}
    if mutant["path"].endswith(".sql"):
        name = f"rowferry.{Path(mutant['path']).stem}"
        near = {test for test, each in reached.items() if name in each}
        # PostgreSQL counts no call that has raised: tests that only see a refusal come last.
        processes |= {test for test, each in reached.items() if any("." in function for function in each)}
    else:
        file = str(Path(job.root, mutant["path"]))
        lines = set(range(mutant["line"], mutant["last_line"] + 1))
        near = {test for test, each in reached.items() if was_imported or lines & set(each.get(file, ()))}
        near = {test for test in near if file in reached[test]}
    by_time = sorted(baseline["seconds"], key=baseline["seconds"].__getitem__)
    return [
        *(test for test in by_time if test in near - processes),
        *(test for test in by_time if test in near & processes),
        *(test for test in by_time if test in processes - near),
    ]


def main(arguments: Iterable[str]) -> int:
    [path] = arguments
    job = Job(**json.loads(Path(path).read_text(encoding="utf-8")))
    os.chdir(job.root)
    tests = list(dict.fromkeys((*job.tests, *job.processes)))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0"]
    return int(pytest.main([*options, *tests], plugins=[Stand(job)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
