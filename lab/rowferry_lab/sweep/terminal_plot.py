"""The plot of a sweep in characters: throughput against parallelism, one mark a batch size, bars of deviation. Pure."""

from collections.abc import Sequence

from rowferry_lab.sweep.summary import Summary

MARKS = "●▲■◆○△□◇"
HEIGHT = 14
"""Lines between the smallest and the largest throughput."""
BETWEEN = 4
"""Columns between two values of the parallelism, besides one column for each batch size."""
AXIS_WIDTH = 8


def draw_plot(summaries: Sequence[Summary]) -> list[str]:
    """Return the lines of the plot; each value of the parallelism has a column for each batch size."""
    parallels = sorted({summary.setting.parallel for summary in summaries})
    sizes = sorted({summary.setting.batch_size for summary in summaries})
    top = max(summary.mean + summary.stdev for summary in summaries) or 1.0
    group = max(2 * len(sizes) + BETWEEN, len(f"{parallels[-1]:,}") + 1)
    canvas = [[" "] * (group * len(parallels)) for _ in range(HEIGHT + 1)]
    for summary in sorted(summaries, key=lambda one: one.setting):
        order = sizes.index(summary.setting.batch_size)
        column = group * parallels.index(summary.setting.parallel) + BETWEEN // 2 + 2 * order
        for line in range(_line_of(summary.mean + summary.stdev, top), _line_of(summary.mean - summary.stdev, top) + 1):
            canvas[line][column] = "│"
        canvas[_line_of(summary.mean, top)][column] = MARKS[order % len(MARKS)]
    lines = [f"{_label(number, top):>{AXIS_WIDTH}} ┤{''.join(row).rstrip()}" for number, row in enumerate(canvas)]
    legend = "   ".join(f"{MARKS[order % len(MARKS)]} batches of {size:,}" for order, size in enumerate(sizes))
    return [
        "entries/s",
        *lines,
        " " * (AXIS_WIDTH + 1) + "└" + "─" * (group * len(parallels)),
        " " * (AXIS_WIDTH + 2) + "".join(f"{parallel:,}".center(group) for parallel in parallels).rstrip(),
        " " * (AXIS_WIDTH + 2) + "objects in flight (--parallel)",
        " " * (AXIS_WIDTH + 2) + legend,
    ]


def _line_of(value: float, top: float) -> int:
    """Return the line of the canvas, 0 at the top, that stands for a value."""
    return HEIGHT - round(min(max(value, 0.0), top) / top * HEIGHT)


def _label(line: int, top: float) -> str:
    """Return what stands at the axis: every other line has its value."""
    return "" if line % 2 else f"{top * (HEIGHT - line) / HEIGHT:,.0f}"
