"""`rowferry sweep`: which batch size and parallelism suit this machine and this latency."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import SLOTS_ARE_GONE, json_option
from rowferry_lab.commands.sweep_values import Latency, Numbers
from rowferry_lab.sweep.grid import AUTO

if TYPE_CHECKING:
    from rowferry_lab.sweep.grid import Grid, Result
    from rowferry_lab.sweep.reporter import Reporter
    from rowferry_lab.sweep.results import CsvFile


RUNS = Group(
    "Runs",
    "The defaults take about eight minutes. More runs and more rows make the figures steadier.",
    ("--repetitions", "--entries", "--within", "--seed"),
)


@click.command(
    "sweep",
    cls=Command,
    groups=(RUNS,),
    removed={"--slots": SLOTS_ARE_GONE},
    short_help="Measure which batch size and parallelism are best, in a simulated environment.",
)
@click.option(
    "-b",
    "--batch-size",
    "batch_sizes",
    default="100,500,1000",
    show_default=True,
    type=Numbers(100_000),
    help="Entries per batch: the values to try.",
)
@click.option(
    "--parallel",
    "parallels",
    default="auto,256,1024",
    show_default=True,
    type=Numbers(10_000, auto=AUTO),
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
    type=Latency(),
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
    "--csv",
    "csv_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one line per run and one per setting to this file.",
)
@click.option(
    "--plot",
    "plot_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the plot into this .png, .svg or .pdf (needs `pip install 'rowferry-lab[plot]'`).",
)
@json_option
def command(
    batch_sizes: tuple[int, ...],
    parallels: tuple[int, ...],
    repetitions: int,
    entries: int | None,
    latency: timedelta,
    within: float,
    seed: int,
    csv_path: Path | None,
    plot_path: Path | None,
    as_json: bool,
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
    from rowferry_lab.sweep.grid import Grid, choose_rows
    from rowferry_lab.sweep.plot import check_plot_path
    from rowferry_lab.sweep.results import CsvFile

    grid = Grid(
        batch_sizes=batch_sizes,
        parallels=parallels,
        repetitions=repetitions,
        entries=entries or choose_rows(batch_sizes),
        latency=latency,
        seed=seed,
    )
    if plot_path is not None:
        check_plot_path(plot_path)
    with CsvFile(csv_path) as csv_file:
        return _run(grid, within / 100, csv_file, plot_path, as_json=as_json)


def _run(grid: Grid, within: float, csv_file: CsvFile, plot_path: Path | None, *, as_json: bool) -> int:
    """Run the sweep, report its results, and return the exit status."""
    import json

    from rowferry_lab.sweep.grid import recommend, summarise
    from rowferry_lab.sweep.plot import draw_plot
    from rowferry_lab.sweep.reporter import Reporter
    from rowferry_lab.sweep.results import describe_sweep

    reporter = Reporter(grid, quiet=as_json)
    results = _collect(grid, csv_file, reporter)
    summaries = summarise(results)
    recommendation = recommend(summaries, within)
    for summary in summaries:
        csv_file.add_summary(summary)
    reporter.conclude(summaries, recommendation)
    if plot_path is not None and summaries:
        draw_plot(plot_path, summaries, grid)
        reporter.print(f"Plot: {plot_path}")
    if as_json:
        click.echo(json.dumps(describe_sweep(grid, results, summaries, recommendation), indent=2))
    return 1 if any(result.problems for result in results) else 0


def _collect(grid: Grid, csv_file: CsvFile, reporter: Reporter) -> list[Result]:
    """Return the results of all runs, each in the CSV as soon as it is there. Raises click.Abort on Ctrl-C, SIGTERM."""
    from rowferry_lab.sweep.run import open_environment, run_sweep

    results: list[Result] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as Ctrl-C does: nothing is left behind
    reporter.introduce()
    try:
        with open_environment() as environment, reporter.show_progress():
            for result in run_sweep(environment, grid, reporter.start):
                results.append(result)
                csv_file.add_result(result)
                reporter.finish(result)
    except KeyboardInterrupt:
        reporter.print(f"Stopped after {len(results)} of {grid.runs} runs; the servers are gone.")
        raise click.exceptions.Abort from None
    return results
