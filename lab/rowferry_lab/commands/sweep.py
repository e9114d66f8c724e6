"""`rowferry sweep`: which batch size and parallelism suit this machine and this latency."""

from __future__ import annotations

import csv
import signal
from functools import partial
from importlib import import_module, util
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from rowferry.errors import UsageError
from rowferry_cli.command import Command, Group
from rowferry_cli.options import Duration
from rowferry_lab.sweep.grid import AUTO, show_parallel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from rowferry_lab.sweep.grid import Result, Summary

FILE: dict[str, Any] = {"type": click.Path(dir_okay=False, path_type=Path), "metavar": "FILE"}
MOST = 100_000
PLOTS = (".png", ".svg", ".pdf")


def _read_numbers(_context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    """Return the numbers of a list, each once, in rising order."""
    numbers: set[int] = set()
    for word in map(str.strip, text.split(",")):
        if word == "auto" and option.name == "parallels":
            numbers.add(AUTO)
        elif word.isdecimal() and 1 <= int(word) <= MOST:
            numbers.add(int(word))
        else:
            raise click.BadParameter(f"{text!r} is not a list of numbers from 1 to {MOST:,}, such as 16,64")
    return tuple(sorted(numbers))


option = partial(click.option, show_default=True)


@click.command(
    "sweep",
    cls=Command,
    groups=(Group("Runs", "More runs and more rows make the figures steadier.", ("--repetitions", "--entries")),),
    short_help="Measure which batch size and parallelism are best, in a simulated environment.",
)
@option(
    *("-b", "--batch-size", "batch_sizes"),
    default="100,500,1000",
    callback=_read_numbers,
    metavar="N,N,…",
    help="Entries per batch: the values to try.",
)
@option(
    *("--parallel", "parallels"),
    default="auto,256,1024",
    callback=_read_numbers,
    metavar="N,N,…",
    help="Objects in flight: the values to try; auto: the worker finds them by itself, as it does by default.",
)
@option("--repetitions", default=3, type=click.IntRange(1, 100), help="Runs of each setting.")
@option(
    "--entries",
    default=8000,
    type=click.IntRange(10, 100_000),
    help="Rows to create for each run; half of them are legacy. Take eight times the largest batch.",
)
@option("--latency", default="70ms", type=Duration("70ms"), metavar="TIME", help="Of each response of the S3 server.")
@option("--csv", "path", help="Write one line per run to this file.", **FILE)
@option("--plot", help="Draw the plot into this .png, .svg or .pdf (needs `pip install 'rowferry-lab[plot]'`).", **FILE)
def command(
    batch_sizes: tuple[int, ...],
    parallels: tuple[int, ...],
    repetitions: int,
    entries: int,
    latency: timedelta,
    path: Path | None,
    plot: Path | None,
) -> int:
    """Compare batch sizes and parallelisms: migrate simulated images with each combination.

    A worker needs no settings. The sweep shows how near its own choice comes to the best of yours. Each run creates
    rows and images on a PostgreSQL and an S3 server of its own, migrates them with one worker, and checks every row,
    every object and the counts. Your own data is not touched.

    \b
    The fastest setting depends on the latency. Measure yours first: a HEAD of a small object takes it once.
      rowferry sweep --latency 25ms --csv sweep.csv --plot sweep.png
      rowferry sweep --batch-size 500 --parallel auto,32,64,128,256,512 --repetitions 5

    Exit status: 0, or 1 if a run was not correct.
    """
    from rowferry.db.connection import connect
    from rowferry.db.schema import initialise
    from rowferry_lab.simulated.environment import start_environment
    from rowferry_lab.sweep.grid import order_runs, summarise
    from rowferry_lab.sweep.run import run_once

    if plot is not None and (plot.suffix not in PLOTS or util.find_spec("matplotlib") is None):
        raise UsageError(f"A plot needs a name in {', '.join(PLOTS)} and matplotlib: pip install 'rowferry-lab[plot]'")
    settings = [*order_runs(batch_sizes, parallels, repetitions)]
    try:
        file = path.open("w", buffering=1, encoding="utf-8") if path else StringIO()
    except OSError as error:
        raise UsageError(f"The CSV {path} cannot be written: {error.strerror}.") from error
    writer = csv.writer(file)
    writer.writerow(("batch_size", "parallel", "entries", "seconds", "entries_per_second", "correct"))
    results: list[Result] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as Ctrl-C does: nothing is left behind
    click.echo(f"{len(settings)} runs of {entries:,} rows. Starting a PostgreSQL and a simulated S3 server …")
    with file, start_environment() as environment, connect("sweep", autocommit=True) as connection:
        initialise(connection)
        for setting in settings:
            result = run_once(environment, connection, entries, latency, setting)
            results.append(result)
            verdict = f"NOT CORRECT: {'; '.join(result.problems)}" if result.problems else "correct"
            click.echo(f"{len(results)}/{len(settings)}  {setting}  {result.rate:,.0f} entries/s  {verdict}")
            figures = (result.entries, round(result.seconds, 3), round(result.rate, 1), not result.problems)
            writer.writerow([setting.batch_size, show_parallel(setting.parallel), *figures])
    summaries = summarise(results)
    click.echo(f"\n{'in flight':>9}  {'batches of':>10}  {'runs':>4}  {'entries/s':>9}  {'±':>6}")
    for (parallel, size), runs, mean, stdev in summaries:
        click.echo(f"{show_parallel(parallel):>9}  {size:>10,}  {runs:>4}  {mean:>9,.0f}  {stdev:>6,.0f}")
    if plot is not None and summaries:
        _draw(plot, summaries, f"rowferry sweep: {1000 * latency.total_seconds():g} ms, ± standard deviation")
    return 1 if any(result.problems for result in results) else 0


def _draw(path: Path, summaries: Sequence[Summary], title: str) -> None:
    """Draw throughput against parallelism, one line a batch size; what the worker chooses is a dashed line."""
    figure = cast("Any", import_module("matplotlib.figure")).Figure(figsize=(7.2, 4.2), layout="constrained")
    axis = figure.subplots()
    ticks = sorted({summary.setting.parallel for summary in summaries} - {AUTO}) or [1]
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, map(str, ticks))
    axis.set(xlabel="objects in flight (--parallel)", ylabel="entries/s", title=title)
    for size in sorted({summary.setting.batch_size for summary in summaries}):
        own, label = [one for one in summaries if one.setting.batch_size == size], f"batches of {size:,}"
        points = [(one.setting.parallel, one.mean, one.stdev) for one in own if one.setting.parallel != AUTO]
        x, y, deviations = zip(*points, strict=True) if points else ((), (), ())
        drawn = axis.errorbar(x, y, yerr=deviations, marker="o", capsize=3, label=label)
        if own[0].setting.parallel == AUTO:
            axis.axhline(own[0].mean, linestyle="--", color=drawn.lines[0].get_color(), label=f"{label}, auto")
    axis.set_ylim(bottom=0)
    axis.legend()
    figure.savefig(path)
