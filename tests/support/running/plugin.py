"""A pytest plugin: with CI=true a skip outside tests/skips.toml is a failure; the last lines say what did not run."""

import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence

import pytest

from support.running.skips import AllowedSkip, find_entry, find_part, read_allowed_skips, read_why_not_run

Report = pytest.TestReport | pytest.CollectReport


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RunRecord(read_allowed_skips()), "rowferry-run-record")


def is_ci() -> bool:
    """Return whether a skip has to be excused."""
    return os.environ.get("CI", "").lower() in {"true", "1"}


def is_skip(report: Report) -> bool:
    """Return whether a report is a skip; an expected failure is reported like one and is none."""
    return report.skipped and not hasattr(report, "wasxfail")


def read_reason(report: Report) -> str:
    """Return why a test was skipped, as the test says it."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")


class RunRecord:
    """Judges skips where the tests run, and counts reports where they are printed: under xdist two processes."""

    def __init__(self, allowed: Sequence[AllowedSkip]) -> None:
        self._allowed = allowed
        self._skipped: Counter[tuple[AllowedSkip | None, str]] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._refuse_unlisted(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        self._refuse_unlisted(report)
        return report

    def _refuse_unlisted(self, report: Report) -> None:
        """Turn a skip that the list does not excuse on this machine into a failure, with CI=true."""
        if is_ci() and is_skip(report):
            reason = read_reason(report)
            if find_entry(self._allowed, report.nodeid, reason) is None:
                report.outcome = "failed"
                report.longrepr = f"tests/skips.toml does not allow this skip here: {reason}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if is_skip(report):
            self._count_skip(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if is_skip(report):
            self._count_skip(report)

    def _count_skip(self, report: Report) -> None:
        reason = read_reason(report)
        entry = find_entry(self._allowed, report.nodeid, reason) or find_part(self._allowed, report.nodeid, reason)
        self._skipped[entry, reason] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = list(self._list_absent())
        if lines:
            terminalreporter.section("what did not run")
            terminalreporter.write("".join(f"{line}\n" for line in lines))

    def _list_absent(self) -> Iterator[str]:
        """Yield a line for each part that is absent, and for each reason that no entry knows."""
        absent: Counter[str] = Counter()
        for (entry, reason), number in self._skipped.items():
            if entry is None:
                yield f"skipped, and with CI=true an error: {number} tests: {reason}"
            elif entry.part:
                absent[entry.part] += number
        for part, number in sorted(absent.items()):
            yield f"NOT RUN: {part} ({read_why_not_run(part) or 'it is not installed'}): {number} tests"
