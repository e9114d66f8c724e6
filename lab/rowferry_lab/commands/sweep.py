"""`rowferry sweep`: which batch size and parallelism suit this machine and this latency."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import Duration, json_option
from rowferry_lab.sweep.grid import AUTO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from rowferry_lab.sweep.grid import Grid, Result

MOST_VALUES = 20
LONGEST_LATENCY = timedelta(seconds=10)
RUNS = Group(
    "Runs",
    "The defaults take about eight minutes. More runs and more rows make the figures steadier.",
    ("--repetitions", "--entries", "--within", "--seed"),
)


class Numbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers from 1 to `most`, separated by commas; each once, in rising order."""

    name = "N,N,…"

    def __init__(self, most: int, words: Mapping[str, int] | None = None) -> None:
        """Take the words for numbers, too."""
        self._most, self._words = most, words or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers; a usage error when they are none."""
        numbers: set[int] = set()
        for word in map(str.strip, str(value).split(",")):
            if word not in self._words and not (word.isascii() and word.isdecimal() and 1 <= int(word) <= self._most):
                self.fail(f"{value!r} is not a list of numbers from 1 to {self._most:,}, such as 16,64", param, ctx)
            numbers.add(self._words[word] if word in self._words else int(word))
        if len(numbers) > MOST_VALUES:
            self.fail(f"{len(numbers)} values are too many, {MOST_VALUES} the most", param, ctx)
        return tuple(sorted(numbers))


def _check_latency(_context: click.Context, _option: click.Parameter, latency: timedelta) -> timedelta:
    if latency > LONGEST_LATENCY:
        raise click.BadParameter(f"{latency.total_seconds():g}s is longer than {LONGEST_LATENCY.total_seconds():g}s")
    return latency


@click.command(
    "sweep",
    cls=Command,
    groups=(RUNS,),
    short_help="Measure which batch size and parallelism are best, in a simulated environment.",
)
@click.option(
    *("-b", "--batch-size", "batch_sizes"),
    default="100,500,1000",
    show_default=True,
    type=Numbers(100_000),
    help="Entries per batch: the values to try.",
)
@click.option(
    *("--parallel", "parallels"),
    default="auto,256,1024",
    show_default=True,
    type=Numbers(10_000, {"auto": AUTO}),
    help="Objects in flight: the values to try; auto: the worker finds them by itself, as it does by default.",
)
@click.option("--repetitions", default=3, show_default=True, type=click.IntRange(1, 100), help="Runs of each setting.")
@click.option(
    "--entries",
    type=click.IntRange(10, 100_000),
    show_default="largest batch × 8, from 2000 to 100000",
    help="Rows to create for each run; half of them are legacy. A short run shows little.",
)
@click.option(
    "--latency",
    default="70ms",
    show_default=True,
    type=Duration("70ms"),
    callback=_check_latency,
    metavar="TIME",
    help="The response time of the simulated S3 server.",
)
@click.option(
    "--within",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0, 99),
    metavar="PERCENT",
    help="Recommend the smallest setting that is at most this much slower than the fastest.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Decides the images and the order of the runs.",
)
@click.option(
    *("--csv", "csv_path"),
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one line per run and one per setting to this file.",
)
@click.option(
    *("--plot", "plot_path"),
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the plot into this .png, .svg or .pdf (needs `pip install 'rowferry-lab[plot]'`).",
)
@json_option
def command(
    batch_sizes: tuple[int, ...],
    entries: int | None,
    within: float,
    csv_path: Path | None,
    plot_path: Path | None,
    as_json: bool,
    **more: Any,
) -> int:
    """Compare batch sizes and parallelisms: migrate simulated images with each combination.

    For the curious: a worker needs no settings. The sweep shows how near its own choice comes to the best of yours.

    Each run creates rows and images on a PostgreSQL and an S3 server of its own, migrates them with one worker, and
    checks every row, every object and the counts. Your own data is not touched.

    \b
    The fastest setting depends on the latency. Measure yours first: a HEAD of a small object takes it once.
      rowferry sweep --latency 25ms --csv sweep.csv --plot sweep.png
      rowferry sweep --batch-size 500 --parallel auto,32,64,128,256,512 --repetitions 5

    The sweep finds the limit of this machine at this latency. A provider has limits of its own, which a worker finds
    while it works, and fixed settings do not.

    Exit status: 0, or 1 if a run was not correct.
    """
    import json

    from rich.console import Console

    from rowferry_lab.sweep import results as show
    from rowferry_lab.sweep.grid import Grid, choose_rows, recommend, summarise

    grid = Grid(batch_sizes=batch_sizes, entries=entries or choose_rows(batch_sizes), **more)
    if plot_path is not None:
        show.check_plot_path(plot_path)
    console = Console(highlight=False, markup=False, soft_wrap=True, stderr=as_json)
    console.quiet = as_json and not console.is_terminal
    with show.open_csv(csv_path) as add_row:
        results = _run_all(grid, add_row, console)
        summaries = summarise(results)
        for summary in summaries:
            add_row(show.list_summary_facts(summary))
    recommendation = recommend(summaries, within / 100)
    show.show_conclusion(console, summaries, recommendation)
    if plot_path is not None and summaries:
        show.draw_plot(plot_path, summaries, grid)
        console.print(f"Plot: {plot_path}")
    if as_json:
        click.echo(json.dumps(show.make_document(grid, results, summaries, recommendation), indent=2))
    return 1 if any(result.problems for result in results) else 0


def _run_all(grid: Grid, add_row: Callable[[Mapping[str, Any]], object], console: Console) -> list[Result]:
    """Return the results of all runs, each in the CSV as soon as it is there. Raises click.Abort on Ctrl-C, SIGTERM."""
    from rich.progress import Progress

    from rowferry_lab.sweep.results import describe_grid, describe_run, list_facts
    from rowferry_lab.sweep.run import open_environment, run_trial

    results: list[Result] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as Ctrl-C does: nothing is left behind
    console.print(*describe_grid(grid), "Starting a PostgreSQL and a simulated S3 server …", sep="\n")
    try:
        with (
            open_environment() as environment,
            Progress(console=console, transient=True, disable=not console.is_terminal) as bar,
        ):
            task = bar.add_task("", total=grid.runs)
            for trial in grid.order():
                bar.update(task, description=str(trial.setting))
                results.append(run_trial(environment, grid, trial))
                add_row(list_facts(results[-1]))
                console.print(describe_run(results[-1], grid.runs))
                bar.advance(task)
    except KeyboardInterrupt:
        console.print(f"Stopped after {len(results)} of {grid.runs} runs; the servers are gone.")
        raise click.exceptions.Abort from None
    return results
