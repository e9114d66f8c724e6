"""What a run shows at a terminal, and what is left of it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from rowferry.reports.progress import Counts
from rowferry_cli import reporter as reporter_module
from rowferry_cli.reporter import Reporter
from rowferry_cli.setup.check import print_findings
from rowferry_cli.throughput import Throughput
from rowferry_enqueue.checks.finding import Finding, fine, problem
from rowferry_queues.migrate.spec import MIGRATE
from support.processes.processes import wait_for


def plain(text: str) -> str:
    """Return what a terminal shows, without its colours and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


def test_a_long_step_prints_lines_where_no_terminal_shows_a_spinner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter_module, "LONGEST_SILENCE", timedelta(seconds=0.01))
    reporter, shown = Reporter(yes=True), StringIO()
    reporter.console = Console(file=shown)
    with reporter.show_activity("checking") as on_progress:
        wait_for(lambda: "… checking (0 s)" in shown.getvalue())
        on_progress("counting objects: 1,000 so far")
        wait_for(lambda: "… counting objects: 1,000 so far (" in shown.getvalue())
    ended = shown.getvalue()
    reporter.print("the end")
    assert shown.getvalue() == f"{ended}the end\n"


def test_a_finding_is_shown_above_the_spinner_before_the_next_is_known() -> None:
    reporter, shown = Reporter(yes=True), StringIO()
    reporter.console = Console(file=shown, force_terminal=True, width=60)

    def look() -> Iterator[Finding]:
        yield fine("the first")
        assert "✓ the first\n" in plain(shown.getvalue())
        yield problem("the second", "correct it")

    with reporter.show_activity("checking"):
        found = print_findings(look(), reporter.console)
    assert [each.what for each in found] == ["the first", "the second"]
    left = [line for line in plain(shown.getvalue()).splitlines() if line and "checking" not in line]
    assert left == ["✓ the first", "✗ the second", "    → correct it"]


def test_100_per_cent_is_not_said_before_the_rows_are_written() -> None:
    alive = Counts(batches=10, batches_init=2, entries=5000, waiting=1000, migrated=4000, in_hand=1000)
    throughput = Throughput(alive, timedelta(seconds=8), MIGRATE.words, "migrate")
    assert str(throughput).startswith("Progress  99%,")
    reporter, shown = Reporter(yes=True), StringIO()
    reporter.console = Console(file=shown, force_terminal=True, width=60)
    with reporter.live_progress():
        reporter.report([throughput])
    assert plain(shown.getvalue()).strip("\n").splitlines()[-1].startswith(" 99% ")
    assert replace(alive, batches_init=0, waiting=0, migrated=5000, in_hand=0).percent == 100


@pytest.mark.parametrize(
    ("reached", "entries", "seconds", "is_told"),
    [(13, 3000, 2, False), (100, 3000, 2, True), (13, 100, 2, True), (13, 3000, 20, True), (0, 3000, 60, False)],
)
def test_no_time_left_is_told_from_a_few_entries_of_the_first_seconds(
    reached: int, entries: int, seconds: int, is_told: bool
) -> None:
    counts = Counts(batches=6, batches_init=6, entries=entries, waiting=entries, in_hand=reached)
    throughput = Throughput(counts, timedelta(seconds=seconds), MIGRATE.words, "migrate")
    assert (throughput.time_left is not None, "time left" in str(throughput)) == (is_told, is_told)


def test_no_time_left_is_told_beside_a_wait_that_is_longer() -> None:
    reporter, shown = Reporter(yes=True), StringIO()
    reporter.console = Console(file=shown, width=200)
    counts = Counts(batches=4, batches_init=1, entries=2000, waiting=500, migrated=1500, in_hand=300)
    chain = [Throughput(counts, timedelta(seconds=8), MIGRATE.words, "migrate")]
    reporter.report(chain, "batch 4 waits 9 s more for a lost worker")
    expected = "Progress  90%, 1,800 of 2,000 entries done, batch 4 waits 9 s more for a lost worker"
    assert shown.getvalue().strip() == expected


def test_an_entry_that_is_read_again_counts_where_it_is_now() -> None:
    """Its row had changed in an attempt before this run, whose batch was interrupted or is requeued."""
    before = Counts(batches=1, batches_init=1, entries=10, waiting=9, changed=1)
    done = Counts(batches=1, batches_done=1, entries=10, migrated=10).since(before)
    assert done == Counts(batches=1, batches_done=1, entries=10, migrated=10)
