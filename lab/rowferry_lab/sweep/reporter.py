"""What a person sees of a sweep: a bar and a line a run, then the table and the recommendation."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from rowferry_lab.sweep.grid import (
    AUTO,
    Grid,
    Recommendation,
    Result,
    Summary,
    Trial,
    count_needed_rows,
    show_parallel,
)


class Reporter:
    """Says things on stdout; with `quiet`, where stdout is for JSON, on stderr and only to a terminal."""

    def __init__(self, grid: Grid, *, quiet: bool) -> None:
        """Choose where to speak."""
        self._grid = grid
        self._console = Console(highlight=False, stderr=quiet, quiet=quiet and not Console(stderr=True).is_terminal)
        self._progress: Progress | None = None
        self._task = TaskID(0)

    def introduce(self) -> None:
        """Say what will be done."""
        grid = self._grid
        parallels = ", ".join(map(show_parallel, grid.parallels))
        self.print(
            f"{grid.runs} runs: {grid.entries:,} rows each, batches of {_list(grid.batch_sizes)}, "
            f"{parallels} in flight, {1000 * grid.latency.total_seconds():g} ms; seed {grid.seed}."
        )
        if starved := grid.starved_sizes:
            needed = count_needed_rows(max(starved))
            self.print(
                f"So few rows make too few batches of {_list(starved)}, so these figures will be too low: "
                f"use --entries {needed}."
            )
        self.print("Starting a PostgreSQL and a simulated S3 server …")

    @contextmanager
    def show_progress(self) -> Generator[None]:
        """Keep a bar on a terminal while the block runs; it goes away however the block ends."""
        if not self._console.is_terminal:
            yield
            return
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        with Progress(*columns, console=self._console, transient=True) as progress:
            self._progress, self._task = progress, progress.add_task("starting", total=self._grid.runs)
            try:
                yield
            finally:
                self._progress = None

    def start(self, trial: Trial) -> None:
        """Say which run is under way."""
        if self._progress is not None:
            self._progress.update(self._task, description=str(trial.setting))

    def finish(self, result: Result) -> None:
        """Say what a run gave."""
        verdict = "correct" if not result.problems else f"NOT CORRECT: {'; '.join(result.problems)}"
        width = len(str(self._grid.runs))
        self.print(
            f"{result.trial.number:>{width}}/{self._grid.runs}  batches of {result.trial.setting.batch_size:>6,}  "
            f"{show_parallel(result.trial.setting.parallel):>6} in flight  {result.rate:>8,.0f} entries/s  {verdict}"
        )
        if self._progress is not None:
            self._progress.advance(self._task)

    def conclude(self, summaries: Sequence[Summary], recommendation: Recommendation | None) -> None:
        """Show the table and the recommended setting."""
        if recommendation is None:
            self.print("No run was correct, so nothing is recommended.")
            return
        table = Table(box=None, header_style="bold")
        for heading in ("in flight", "batches of", "runs", "entries/s", "±", "S3 server's core"):
            table.add_column(heading, justify="right")
        for summary in summaries:
            table.add_row(
                show_parallel(summary.setting.parallel),
                f"{summary.setting.batch_size:,}",
                str(summary.runs),
                f"{summary.mean:,.0f}",
                f"{summary.stdev:,.0f}",
                f"{summary.server_share:.0%}",
                style="green" if summary.setting == recommendation.setting else None,
            )
        self._console.print()
        self._console.print(table)
        self.print("")
        self._recommend(recommendation)

    def _recommend(self, recommendation: Recommendation) -> None:
        setting = recommendation.setting
        self.print(f"Recommended: {setting}.", *recommendation.why, "")
        self.print(f"  rowferry enqueue --batch-size {setting.batch_size}")
        bound = "" if setting.parallel == AUTO else f" --parallel {setting.parallel} --min-parallel {setting.parallel}"
        self.print(f"  rowferry worker{bound}")

    def print(self, *lines: str) -> None:
        """Print lines, above the bar where there is one."""
        console = self._progress.console if self._progress else self._console
        for line in lines:
            console.print(line, markup=False, soft_wrap=True)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
