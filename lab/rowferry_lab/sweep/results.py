"""What a sweep shows and leaves behind: lines and a table, a CSV, a JSON document, a plot."""

import csv
import os
import platform
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from rowferry import __version__
from rowferry.errors import UsageError
from rowferry_lab.sweep.grid import AUTO, Grid, Recommendation, Result, Summary, count_needed_rows, show_parallel

COLUMNS = (
    *("kind", "number", "batch_size", "parallel", "repetition", "entries", "seconds", "entries_per_second"),
    *("entries_per_second_stdev", "worker_cpu_seconds", "server_cpu_share", "correct"),
)
"""Of the CSV. `kind` is `run`, or `summary` where a row stands for all correct runs of a setting."""
PLOTS = (".png", ".svg", ".pdf")


def describe_grid(grid: Grid) -> list[str]:
    """Return what will be done, and whether its figures will be too low."""
    lines = [
        f"{grid.runs} runs: {grid.entries:,} rows each, batches of {_list(grid.batch_sizes)}, "
        f"{', '.join(map(show_parallel, grid.parallels))} in flight, {1000 * grid.latency.total_seconds():g} ms; "
        f"seed {grid.seed}."
    ]
    if starved := grid.starved_sizes:
        lines.append(
            f"So few rows make too few batches of {_list(starved)}, so these figures will be too low: "
            f"use --entries {count_needed_rows(max(starved))}."
        )
    return lines


def describe_run(result: Result, runs: int) -> str:
    """Return what a run gave as a line."""
    number, _, setting = result.trial
    verdict = "correct" if not result.problems else f"NOT CORRECT: {'; '.join(result.problems)}"
    return (
        f"{number:>{len(str(runs))}}/{runs}  batches of {setting.batch_size:>6,}  "
        f"{show_parallel(setting.parallel):>6} in flight  {result.rate:>8,.0f} entries/s  {verdict}"
    )


def show_conclusion(console: Console, summaries: Sequence[Summary], recommendation: Recommendation | None) -> None:
    """Print the table, and the commands of the recommended setting."""
    if recommendation is None:
        console.print("No run was correct, so nothing is recommended.")
        return
    table = Table("in flight", "batches of", "runs", "entries/s", "±", "S3 server's core", box=None)
    for column in table.columns:
        column.justify = "right"
    for setting, runs, mean, stdev, share in summaries:
        figures = (f"{setting.batch_size:,}", str(runs), f"{mean:,.0f}", f"{stdev:,.0f}", f"{share:.0%}")
        style = "green" if setting == recommendation.setting else None
        table.add_row(show_parallel(setting.parallel), *figures, style=style)
    (parallel, batch_size), why = recommendation
    bound = "" if parallel == AUTO else f" --parallel {parallel} --min-parallel {parallel}"
    console.print("", table, "", sep="\n")
    console.print(f"Recommended: {recommendation.setting}.", *why, "", sep="\n")
    console.print(f"  rowferry enqueue --batch-size {batch_size}", f"  rowferry worker{bound}", sep="\n")


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def _name(parallel: int) -> int | str:
    return parallel if parallel != AUTO else "auto"


def list_facts(result: Result) -> dict[str, Any]:
    """Return a run as a row of the CSV; times in seconds."""
    number, repetition, (parallel, batch_size) = result.trial
    return {
        "kind": "run",
        "number": number,
        "batch_size": batch_size,
        "parallel": _name(parallel),
        "repetition": repetition,
        "entries": result.entries,
        "seconds": round(result.duration.total_seconds(), 3),
        "entries_per_second": round(result.rate, 1),
        "worker_cpu_seconds": round(result.worker_cpu.total_seconds(), 2),
        "server_cpu_share": round(result.server_share, 3),
        "correct": not result.problems,
    }


def list_summary_facts(summary: Summary) -> dict[str, Any]:
    """Return the correct runs of a setting as a row of the CSV; its repetition is how many they are."""
    return {
        "kind": "summary",
        "batch_size": summary.setting.batch_size,
        "parallel": _name(summary.setting.parallel),
        "repetition": summary.runs,
        "entries_per_second": round(summary.mean, 1),
        "entries_per_second_stdev": round(summary.stdev, 1),
        "server_cpu_share": round(summary.server_share, 3),
        "correct": True,
    }


def make_document(
    grid: Grid, results: Sequence[Result], summaries: Sequence[Summary], recommendation: Recommendation | None
) -> dict[str, Any]:
    """Return everything as plain data: the rows of the CSV, and what it does not say."""
    return {
        "version": __version__,
        "machine": {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
        "settings": {"latency_seconds": grid.latency.total_seconds(), "rows": grid.entries, "seed": grid.seed},
        "runs": [{**list_facts(result), "problems": list(result.problems)} for result in results],
        "summary": [list_summary_facts(summary) for summary in summaries],
        "recommendation": recommendation
        and {
            "batch_size": recommendation.setting.batch_size,
            "parallel": _name(recommendation.setting.parallel),
            "why": list(recommendation.why),
        },
    }


@contextmanager
def open_csv(path: Path | None) -> Generator[Callable[[Mapping[str, Any]], object]]:
    """Yield what adds a row to the CSV, which is complete up to the last row at any moment; None: there is no CSV.

    The file is begun at once, so that a place where nothing can be written is known before the first run. Raises
    UsageError when it cannot be written.
    """
    if path is None:
        yield lambda _row: None
        return
    try:
        file = path.open("w", buffering=1, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"The CSV {path} cannot be written: {error.strerror}.") from error
    with file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        yield writer.writerow


def check_plot_path(path: Path) -> None:
    """Raise UsageError when no such image could be drawn in the end: it is better known before the first run."""
    if path.suffix.lower() not in PLOTS:
        raise UsageError(f"The plot {path} must end in {', '.join(PLOTS[:-1])} or {PLOTS[-1]}.")
    if find_spec("matplotlib") is None:
        raise UsageError("matplotlib, which draws plots, is not installed; run: pip install 'rowferry-lab[plot]'")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"The plot {path} cannot be written: its folder does not exist.")


def draw_plot(path: Path, summaries: Sequence[Summary], grid: Grid) -> None:
    """Draw throughput against parallelism, one line a batch size. Raises UsageError when the file cannot be written."""
    figure = cast("Any", import_module("matplotlib.figure")).Figure(figsize=(7.2, 4.2), layout="constrained")
    axis = figure.subplots()
    for size in grid.batch_sizes:
        own = [summary for summary in summaries if summary.setting.batch_size == size]
        points = [(one.setting.parallel, one.mean, one.stdev) for one in own if one.setting.parallel != AUTO]
        x, y, deviations = zip(*points, strict=True) if points else ((), (), ())
        drawn = axis.errorbar(x, y, yerr=deviations, marker="o", markersize=4, capsize=3, label=f"batches of {size:,}")
        for auto in (summary for summary in own if summary.setting.parallel == AUTO):
            colour = drawn.lines[0].get_color()
            axis.axhline(auto.mean, linestyle="--", color=colour, label="the same, as the worker chooses")
    ticks = [parallel for parallel in grid.parallels if parallel != AUTO]
    milliseconds = 1000 * grid.latency.total_seconds()
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{parallel:,}" for parallel in ticks])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("objects in flight (--parallel)")
    axis.set_ylabel("entries/s")
    axis.set_title(f"rowferry sweep: {milliseconds:g} ms, {grid.repetitions} runs a point, ± standard deviation")
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"The plot {path} cannot be written: {error.strerror}.") from error
