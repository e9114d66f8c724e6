"""What a run prints: messages, questions, a live progress bar (plain lines without a terminal), and outcomes."""

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rowferry.batch import Outcome
from rowferry.formatting import format_duration, show_text
from rowferry.queue_spec import Words
from rowferry.reports.progress import Counts, Throughput
from rowferry_cli.messages import confirm

_log = logging.getLogger(__name__)

REPORT_INTERVAL = timedelta(seconds=2)


class Reporter:
    """Prints to stdout and to the log; with `yes`, answers every question with yes."""

    def __init__(self, words: Words, *, yes: bool, to_stderr: bool = False) -> None:
        """`words`: how outcomes are explained. `to_stderr`: print there, since stdout is for JSON."""
        self.console = Console(highlight=False, stderr=to_stderr)
        self._outcomes = words.outcomes
        self._yes = yes
        self._live: Progress | None = None
        self._task = TaskID(0)
        self._reported_at = 0.0

    def print(self, message: str) -> None:
        """Print a message, and log it."""
        _log.info("%s", message)
        (self._live.console if self._live else self.console).print(show_text(message), markup=False, soft_wrap=True)

    def confirm(self, question: str) -> None:
        """Ask yes or no. Raises click.Abort on no."""
        if not self._yes:
            confirm(question)

    @contextmanager
    def live_progress(self) -> Generator[None]:
        """Show a progress bar on a terminal during the block."""
        if not self.console.is_terminal:
            yield
            return
        columns = (TextColumn("{task.percentage:>3.0f}%"), BarColumn(bar_width=None), TextColumn("{task.description}"))
        with Progress(*columns, console=self.console, expand=True, transient=True) as live:
            self._live, self._task = live, live.add_task("starting workers", total=None)
            try:
                yield
            finally:
                self._live = None

    def report(self, throughput: Throughput) -> None:
        """Move the bar, or print a line every two seconds; log a line as often."""
        if self._live is not None:
            counts, line = throughput.counts, _describe(throughput)
            self._live.update(self._task, total=counts.entries, completed=counts.finished, description=line)
        if time.monotonic() - self._reported_at >= REPORT_INTERVAL.total_seconds():
            self._reported_at = time.monotonic()
            _log.info("%s", throughput)
            if self._live is None:
                self.console.print(str(throughput), markup=False, soft_wrap=True)

    def report_outcomes(self, counts: Counts) -> None:
        """Print the entries by outcome, and whether they add up."""
        for outcome, count in counts.outcomes.items():
            if count or outcome is Outcome.MIGRATED:
                self.print(f"  {outcome:<9} {count:>12,}  {self._outcomes[outcome]}")
        if counts.waiting:
            self.print(f"  {'waiting':<9} {counts.waiting:>12,}  not processed yet")
        total = counts.waiting + counts.finished
        check = "the sum" if counts.balances else f"MISMATCH: outcomes add up to {total:,}, not {counts.entries:,}"
        self.print(f"  {'entries':<9} {counts.entries:>12,}  {check}")


def _describe(throughput: Throughput) -> str:
    counts, left = throughput.counts, throughput.time_left
    line = (
        f"{counts.batches - counts.batches_init:,}/{counts.batches:,} batches · {throughput.summary} · "
        f"{throughput.rate:,.0f}/s · {format_duration(throughput.elapsed)}"
    )
    return line if left is None else f"{line} · {format_duration(left)} left"


@contextmanager
def show_spinner() -> Generator[Callable[[str], None]]:
    """Show a spinner on stderr during a long scan, and yield what sets its text; does nothing without a terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda _text: None
        return
    with console.status("reading ...") as status:
        yield lambda text: status.update(f"{text} ...")
