"""What a person sees of a run: questions, a live bar on a terminal or plain lines elsewhere, and the account."""

import logging
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rowferry.batch import Outcome
from rowferry.formatting import show_text
from rowferry.reports.progress import Counts, Pace, show_time
from rowferry_cli.usage import confirm

_log = logging.getLogger(__name__)

TELL_EVERY = timedelta(seconds=2)

MEANINGS = {
    Outcome.MIGRATED: "object copied, row updated",
    Outcome.KEPT: "an identical object was there, row updated",
    Outcome.CHANGED: "the application rewrote the row meanwhile",
    Outcome.DELETED: "the row was deleted meanwhile",
    Outcome.MISSING: "no legacy object",
    Outcome.CONFLICT: "a different production object is there",
    Outcome.FAILED: "anything else",
}


class Screen:
    """Says things to the person and to the log; `yes` answers the questions."""

    def __init__(self, *, yes: bool, meanings: Mapping[Outcome, str] = MEANINGS) -> None:
        """Draw a live bar only where stdout is a terminal; `meanings` are the outcomes in the queue's own words."""
        self._meanings = meanings
        self.console = Console(highlight=False)
        self._yes = yes
        self._live: Progress | None = None
        self._task = TaskID(0)
        self._told_at = 0.0

    def say(self, words: str) -> None:
        """Print words and log them."""
        _log.info("%s", words)
        (self._live.console if self._live else self.console).print(show_text(words), markup=False, soft_wrap=True)

    def ask(self, question: str) -> None:
        """Ask yes or no. Raises click.Abort on no."""
        if not self._yes:
            confirm(question)

    @contextmanager
    def live_progress(self) -> Generator[None]:
        """Keep a live bar on a terminal while the block runs; the bar goes away however it ends."""
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

    def show_progress(self, pace: Pace) -> None:
        """Move the bar, or print a line every two seconds; log a line as often."""
        if self._live is not None:
            self._live.update(
                self._task, total=pace.counts.entries, completed=pace.counts.finished, description=_describe(pace)
            )
        if time.monotonic() - self._told_at >= TELL_EVERY.total_seconds():
            self._told_at = time.monotonic()
            _log.info("%s", pace)
            if self._live is None:
                self.console.print(str(pace), markup=False, soft_wrap=True)

    def show_account(self, counts: Counts) -> None:
        """Print entries by outcome, and that they add up."""
        for outcome, count in counts.outcomes.items():
            if count or outcome is Outcome.MIGRATED:
                self.say(f"  {outcome:<9} {count:>12,}  {self._meanings[outcome]}")
        if counts.waiting:
            self.say(f"  {'waiting':<9} {counts.waiting:>12,}  not yet looked at")
        self.say(f"  {'entries':<9} {counts.entries:>12,}  {'the sum' if counts.balances else 'THE SUM IS ANOTHER'}")


def _describe(pace: Pace) -> str:
    counts, left = pace.counts, pace.time_left
    words = (
        f"{counts.batches - counts.batches_init:,}/{counts.batches:,} batches · {pace.deeds} · "
        f"{pace.rate:,.0f}/s · {show_time(pace.elapsed)}"
    )
    return words if left is None else f"{words} · {show_time(left)} left"
