"""What a run shows at a terminal, and what is left of it."""

from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from rowferry_cli.run import reporter as reporter_module
from rowferry_cli.run.reporter import Reporter
from support.processes.processes import wait_for

ERASED = "\x1b[2K"
"""Erases a line (ECMA-48, EL)."""


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


def test_the_progress_bar_leaves_the_terminal_with_the_run() -> None:
    reporter, shown = Reporter(yes=True), StringIO()
    reporter.console = Console(file=shown, force_terminal=True, width=80)
    with reporter.live_progress():
        reporter.print("a message")
    assert "starting workers" in shown.getvalue()
    assert shown.getvalue().endswith(ERASED)
