"""The plot of a sweep as a file, by matplotlib: throughput against parallelism, one line a batch size, error bars."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from rowferry.errors import UsageError
from rowferry_lab.sweep.grid import AUTO, Grid, Summary

AUTO_LABEL = "as the worker chooses"
FORMATS = ("png", "svg", "pdf")


def check_plot_path(path: Path) -> None:
    """Raise UsageError when no such image could be drawn in the end: it is better known before the first run."""
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(f"The plot {path} must end in .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}.")
    if find_spec("matplotlib") is None:
        raise UsageError("matplotlib, which draws plots, is not installed; run: pip install 'rowferry-lab[plot]'")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"The plot {path} cannot be written: its folder does not exist.")


def draw_plot(path: Path, summaries: Sequence[Summary], grid: Grid) -> None:
    """Draw the plot. Raises UsageError when the file cannot be written."""
    figure = cast("Any", import_module("matplotlib.figure")).Figure(figsize=(7.2, 4.2), layout="constrained")
    axis = figure.subplots()
    for size in grid.batch_sizes:
        own = [summary for summary in summaries if summary.setting.batch_size == size]
        line = [summary for summary in own if summary.setting.parallel != AUTO]
        drawn = axis.errorbar(
            [summary.setting.parallel for summary in line],
            [summary.mean for summary in line],
            yerr=[summary.stdev for summary in line],
            marker="o",
            markersize=4,
            capsize=3,
            label=f"batches of {size:,}",
        )
        for auto in (summary for summary in own if summary.setting.parallel == AUTO):
            axis.axhline(auto.mean, linestyle="--", color=drawn.lines[0].get_color(), label=f"the same, {AUTO_LABEL}")
    axis.set_xscale("log", base=2)
    ticks = [parallel for parallel in grid.parallels if parallel != AUTO]
    axis.set_xticks(ticks, [f"{parallel:,}" for parallel in ticks])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("objects in flight (--parallel)")
    axis.set_ylabel("entries/s")
    milliseconds = 1000 * grid.latency.total_seconds()
    axis.set_title(f"rowferry sweep: {milliseconds:g} ms, {grid.repetitions} runs a point, ± standard deviation")
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"The plot {path} cannot be written: {error.strerror}.") from error
