"""What a run prints: messages, questions, a live progress bar (plain lines without a terminal), and outcomes."""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from rowferry.batch import Outcome
from rowferry.formatting import count_entries, format_duration, format_rate, show_text
from rowferry_cli.messages import confirm
from rowferry_cli.throughput import Throughput

_log = logging.getLogger(__name__)

REPORT_INTERVAL = timedelta(seconds=2)
BESIDE_FACTS = 17
"""Columns for the percentage, a bar of ten, and what separates them."""
LONGEST_SILENCE = timedelta(seconds=2.5)
"""Of a command that works, where no terminal shows a spinner."""


class _Facts(ProgressColumn):
    """The text beside a bar, in one line; only its end is cut off where the terminal is too narrow."""

    def __init__(self, console: Console) -> None:
        super().__init__(Column(no_wrap=True))
        self._console = console

    def render(self, task: Task) -> Text:
        """Return what fits beside the percentage and a short bar."""
        text = Text(task.description)
        text.truncate(max(self._console.width - BESIDE_FACTS, 1), overflow="ellipsis")
        return text


class Reporter:
    """Prints to stdout and to the log; with `yes`, answers every question with yes."""

    def __init__(self, *, yes: bool, to_stderr: bool = False) -> None:
        """`to_stderr`: print there, since stdout is for JSON."""
        self.console = Console(highlight=False, stderr=to_stderr)
        self._yes = yes
        self._live: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        """The bar of each queue."""
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
    def show_activity(self, words: str) -> Generator[Callable[[str], None]]:
        """Show that a long step goes on, and yield what says where it is: a spinner, or lines without a terminal."""
        if self._live is not None:
            yield lambda _text: None
        elif self.console.is_terminal:
            with show_spinner(self.console) as on_progress:
                on_progress(words)
                yield on_progress
        else:
            with _print_lines(self.console, words) as on_progress:
                yield on_progress

    @contextmanager
    def live_progress(self) -> Generator[None]:
        """Show a progress bar for each queue on a terminal during the block."""
        if not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.fields[percent]:>3}%"),
            BarColumn(bar_width=None),
            _Facts(self.console),
        )
        with Progress(*columns, console=self.console, expand=True, transient=True) as live:
            self._live, self._tasks = live, {"": live.add_task("starting workers", total=None, percent=0)}
            try:
                yield
            finally:
                self._live = None

    def report(self, chain: Sequence[Throughput], waits: str = "") -> None:
        """Move the bar of each queue, or print a line every two seconds; log a line as often.

        `waits`: what the run waits for, in words.
        """
        if self._live is not None:
            for throughput in chain:
                self._move_bar(self._live, throughput, _name(throughput, chain), waits)
        if time.monotonic() - self._reported_at >= REPORT_INTERVAL.total_seconds():
            self._reported_at = time.monotonic()
            for throughput in chain:
                line = f"{_name(throughput, chain)}{_describe_wait(throughput, waits) if waits else throughput}"
                _log.info("%s", line)
                if self._live is None:
                    self.console.print(line, markup=False, soft_wrap=True)

    def _move_bar(self, live: Progress, throughput: Throughput, name: str, waits: str) -> None:
        if "" in self._tasks:  # that of the start is the bar of the first queue
            self._tasks = {throughput.queue: self._tasks.pop("")}
        if throughput.queue not in self._tasks:
            self._tasks[throughput.queue] = live.add_task("", total=None, percent=0)
        counts, line = throughput.counts, f"{name}{_describe(throughput, waits)}"
        live.update(
            self._tasks[throughput.queue],
            total=counts.entries,
            completed=counts.worked_off,
            description=line,
            percent=counts.percent,
        )

    def report_end(self, chain: Sequence[Throughput]) -> None:
        """Print the last line of progress of each queue."""
        for throughput in chain:
            self.print(f"{_name(throughput, chain)}{throughput}")

    def report_outcomes(self, chain: Sequence[Throughput]) -> None:
        """Print the entries by outcome, in the words of each queue, and whether they add up."""
        for throughput in chain:
            if name := _name(throughput, chain):
                self.print(name.strip())
            self._report_outcomes_of(throughput)

    def _report_outcomes_of(self, throughput: Throughput) -> None:
        counts, words = throughput.counts, throughput.words.outcomes
        for outcome, count in counts.outcomes.items():
            if count or outcome is Outcome.MIGRATED:
                self.print(f"  {outcome:<9} {count:>12,}  {words.get(outcome, '')}".rstrip())
        if counts.waiting:
            self.print(f"  {'waiting':<9} {counts.waiting:>12,}  not processed yet")
        total = counts.waiting + counts.finished
        check = "the sum" if counts.balances else f"MISMATCH: outcomes add up to {total:,}, not {counts.entries:,}"
        self.print(f"  {'entries':<9} {counts.entries:>12,}  {check}")


def _name(throughput: Throughput, chain: Sequence[Throughput]) -> str:
    """Return what precedes a line about one queue of several: its name."""
    return f"{throughput.queue}: " if len(chain) > 1 else ""


def _describe_wait(throughput: Throughput, waits: str) -> str:
    """Return the progress as one line, with what is waited for: that bounds the time left, not the rate."""
    counts = throughput.counts
    return f"Progress {counts.percent:3}%, {counts.worked_off:,} of {count_entries(counts.entries)} done, {waits}"


def _describe(throughput: Throughput, waits: str = "") -> str:
    """Return the text beside a bar; a narrow terminal cuts its end off."""
    counts, left = throughput.counts, throughput.time_left
    facts = [f"{counts.worked_off:,}/{counts.entries:,}"]
    facts += [waits] if waits else [f"{counts.batches - counts.batches_init:,}/{counts.batches:,} batches"]
    facts += [f"{format_rate(throughput.rate)}/s"] if throughput.rate and not waits else []
    facts += [format_duration(throughput.elapsed)]
    facts += [f"{format_duration(left)} left"] if left is not None and counts.waiting and not waits else []
    return " · ".join([*facts, throughput.summary])


@contextmanager
def _print_lines(console: Console, words: str) -> Generator[Callable[[str], None]]:
    """Print a line whenever the block has lasted for another LONGEST_SILENCE; yield what sets its text."""
    said, began, is_over = deque([words], 1), time.monotonic(), Event()

    def print_lines() -> None:
        while not is_over.wait(LONGEST_SILENCE.total_seconds()):
            seconds = timedelta(seconds=time.monotonic() - began)
            console.print(show_text(f"… {said[-1]} ({format_duration(seconds)})"), markup=False, soft_wrap=True)

    printing = Thread(target=print_lines, name="activity", daemon=True)
    printing.start()
    try:
        yield said.append
    finally:
        is_over.set()
        printing.join()


@contextmanager
def show_spinner(console: Console | None = None) -> Generator[Callable[[str], None]]:
    """Show a spinner during a long step, and yield what sets its text; lines without a terminal.

    `console`: what prints during the step, so that it prints above the spinner; by default nothing does, and the
    spinner is on stderr.
    """
    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        with _print_lines(console, "reading") as on_progress:
            yield on_progress
        return
    with console.status("reading ...") as status:
        yield lambda text: status.update(f"{text} ...")
