"""Turns the rate of a queue into a chart: heights, labels, and the same in words. Pure."""

from collections.abc import Mapping, Sequence

from rowferry.batch import Outcome
from rowferry.formatting import count, count_entries, format_duration
from rowferry_cli.report.events import Pause
from rowferry_cli.report.facts import Interval, Span
from rowferry_cli.report.model import Bar, Chart, Column, Table
from rowferry_cli.report.wording import write_moment, write_rate, write_step, write_times

MOST_ROWS = 12
"""Of the table behind a chart."""
LEADING = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)

Counts = Mapping[Outcome, int]


def build_chart(span: Span, intervals: Sequence[Interval], pauses: Sequence[Pause] = ()) -> Chart:
    """Return the chart of a queue; intervals without a finished batch are empty."""
    counts = spread(span, intervals)
    totals = [sum(one.values()) for one in counts]
    rates = [total / span.seconds_of(index) for index, total in enumerate(totals)]
    top = round_up(max(rates))
    times = [span.begins_at + index * span.step for index in range(span.count + 1)]
    labels = write_times(times, span.step)
    present = [outcome for outcome in Outcome if any(one.get(outcome) for one in counts)]
    return Chart(
        title=f"Rate of {span.queue}",
        description=describe(span, totals, rates),
        highest=write_rate(top),
        half=write_rate(top / 2),
        times=(labels[0], labels[len(labels) // 2], labels[-1]),
        columns=[stack(one, labels[index], top, span.seconds_of(index)) for index, one in enumerate(counts)],
        marks=mark(counts, labels),
        pauses=shade(span, pauses),
        outcomes=[str(outcome) for outcome in present],
        numbers=tabulate(span, counts, present),
    )


def spread(span: Span, intervals: Sequence[Interval]) -> list[Counts]:
    """Return the counts of each interval of a span, in order; an empty mapping where nothing finished."""
    found: list[Counts] = [{} for _ in range(span.count)]
    for interval in intervals:
        index = (interval.began_at - span.begins_at) // span.step
        found[max(0, min(index, span.count - 1))] = interval.outcomes
    return found


def round_up(highest: float) -> float:
    """Return the top of an axis: the next number of one or two round digits that is not below `highest`; 1 for 0."""
    if highest <= 0:
        return 1
    power = 10.0 ** int(f"{highest:e}".partition("e")[2])
    return next(lead * power for lead in LEADING if lead * power >= highest * 0.999999)


def stack(counts: Counts, label: str, top: float, seconds: float) -> list[Bar]:
    """Return the bars of an interval of so many seconds from the bottom up, `top` being the highest rate.

    The title says all of it.
    """
    if not (total := sum(counts.values())):
        return []
    named = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
    title = f"{label}: {write_rate(total / seconds)} entries/s ({named})"
    bars: list[Bar] = []
    below = 0.0
    for outcome in Outcome:
        if count := counts.get(outcome, 0):
            size = 100 * count / seconds / top
            bars.append(Bar(str(outcome), below, size, title))
            below += size
    return bars


def mark(counts: Sequence[Counts], labels: Sequence[str]) -> list[Bar]:
    """Return a mark for each interval with entries that need an operator: among thousands they are too low to see."""
    marks: list[Bar] = []
    for index, one in enumerate(counts):
        if found := sum(count for outcome, count in one.items() if not outcome.settled):
            worst = max((outcome for outcome in one if not outcome.settled), key=lambda name: one[name])
            title = f"{labels[index]}: {found:,} need an operator"
            marks.append(Bar(str(worst), 100 * index / len(counts), 100 / len(counts), title))
    return marks


def shade(span: Span, pauses: Sequence[Pause]) -> list[Bar]:
    """Return a bar behind the chart for each pause that it covers."""
    ends_at = span.begins_at + span.count * span.step
    bars: list[Bar] = []
    for began_at, ended_at in pauses:
        first, last = max(began_at, span.begins_at), min(ended_at or ends_at, ends_at)
        if first < last:
            start, size = (100 * part / (ends_at - span.begins_at) for part in (first - span.begins_at, last - first))
            until = f" to {write_moment(ended_at)}" if ended_at else ""
            bars.append(Bar("pause", start, size, f"paused from {write_moment(began_at)}{until}"))
    return bars


def describe(span: Span, totals: Sequence[int], rates: Sequence[float]) -> str:
    """Return what the chart shows in sentences."""
    busiest = max(range(len(rates)), key=lambda index: rates[index])
    at = write_moment(span.begins_at + busiest * span.step)
    idle = totals.count(0)
    intervals = f"{count(len(totals), 'interval', 'intervals')} of {write_step(span.step)}"
    begins = write_moment(span.begins_at)
    words = [
        f"{count_entries(sum(totals))} by the end of their attempt, in {intervals} from {begins}.",
        f"The busiest began at {at}: {write_rate(rates[busiest])} entries/s.",
    ]
    if idle:
        words.append(f"In {idle} of them no attempt ended ({format_duration(idle * span.step)}).")
    return " ".join(words)


def tabulate(span: Span, counts: Sequence[Counts], outcomes: Sequence[Outcome]) -> Table:
    """Return the chart as a table of at most MOST_ROWS rows, each of as many intervals."""
    width = -(-span.count // MOST_ROWS)
    labels = write_times([span.begins_at + index * span.step for index in range(0, span.count, width)], span.step)
    rows: list[list[str | int]] = []
    for label, start in zip(labels, range(0, span.count, width), strict=True):
        group = counts[start : start + width]
        sums = [sum(one.get(outcome, 0) for one in group) for outcome in outcomes]
        rate = sum(sums) / sum(span.seconds_of(index) for index in range(start, start + len(group)))
        rows.append([label, write_rate(rate), *sums])
    columns = [Column("From (UTC)"), Column("Entries/s", "number"), *(Column(str(name), "number") for name in outcomes)]
    return Table(f"Rate of {span.queue} in {len(rows)} steps of {write_step(width * span.step)}", columns, rows)
