"""What a run shows at a terminal, and what is left of it."""

from io import StringIO

from rich.console import Console

from rowferry_cli.run.reporter import Reporter

ERASED = "\x1b[2K"
"""Erases a line (ECMA-48, EL)."""


def test_the_progress_bar_leaves_the_terminal_with_the_run() -> None:
    reporter, shown = Reporter(yes=True), StringIO()
    reporter.console = Console(file=shown, force_terminal=True, width=80)
    with reporter.live_progress():
        reporter.print("a message")
    assert "starting workers" in shown.getvalue()
    assert shown.getvalue().endswith(ERASED)
