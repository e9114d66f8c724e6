"""Prints an estimate for a person: what, how much, how long, what bounds it, and what was assumed."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from math import isfinite

from rich import box
from rich.console import Console
from rich.table import Table

from rowferry.formatting import count, format_duration, show_text
from rowferry_cli.estimate.bounds import Cause
from rowferry_cli.estimate.intervals import Interval
from rowferry_cli.estimate.result import Estimate, calculate_costs, classify_sizes
from rowferry_cli.estimate.totals import Share

_BARS = " ▁▂▃▄▅▆▇█"
_SHARES: dict[Share, str] = {
    "missing": "without a legacy object",
    "existing": "in production already",
    "tagged": "with tags",
    "in_parts": "copied in parts",
}
_MORE_WORKERS: dict[Cause, str] = {
    "cpu": "More workers help, one per core.",
    "latency": "More workers help.",
    "saturation": "More workers on this host hardly help; on others they may.",
    "queue": "More workers may help.",
    "short_measurement": "A longer measurement tells more: see --for and --sample.",
}


def print_estimate(estimate: Estimate, console: Console) -> None:
    """Print a table, and then sentences: the bound, how it was measured, what is assumed, the next command."""
    console.print(_tabulate(estimate, console))
    for sentence in describe_estimate(estimate):
        console.print(show_text(sentence), markup=False, soft_wrap=True)


def _tabulate(estimate: Estimate, console: Console) -> Table:
    work, seconds = estimate.work, estimate.seconds
    lines = box.ROUNDED if console.is_terminal else None
    table = Table(box=lines, pad_edge=console.is_terminal)
    table.add_column("", overflow="fold")
    table.add_column("estimate", justify="right", no_wrap=True)
    table.add_column("range", justify="right", no_wrap=True)

    def add(name: str, value: Interval, show: Callable[[float], str] = _show_number, *, end: bool = False) -> None:
        low, high = show(value.low), show(value.high)
        between = "exact" if value.is_exact else low if low == high else f"{low} – {high}"
        table.add_row(name, show(value.estimate), between, end_section=end)

    if len(work.tables) > 1:
        for label, entries in work.tables.items():
            add(f"entries {label}", entries)
    add("entries", work.entries)
    for name, words in _SHARES.items():
        if work.shares[name].estimate:
            add(f"  {words}", work.shares[name], _show_share)
    add("bytes to copy", work.copied_bytes, show_bytes)
    add("egress of legacy", work.egress_bytes, show_bytes, end=True)
    for (side, operation), number in sorted(work.requests.items()):
        if round(number):
            table.add_row(f"{side} {operation}", _show_number(number), "")
    add("requests", work.all_requests, end=True)
    for name, cost in calculate_costs(work, estimate.prices).items():
        add(f"cost of {name}", cost, _show_price)
    if seconds is not None and estimate.projection is not None:
        add("entries/s", estimate.projection.entries_per_second)
        add("time", seconds, _show_seconds)
    return table


def describe_estimate(estimate: Estimate) -> Iterator[str]:
    """Yield the sentences below the table."""
    work = estimate.work
    if work.sizes:
        yield f"Sizes of {count(len(work.sizes), 'object', 'objects')}: {draw_sizes(work.sizes)}"
    yield from _describe_bound(estimate)
    yield from _describe_connections(estimate)
    yield from _describe_measurement(estimate)
    for assumption in estimate.assumptions:
        yield f"Assumed: {assumption}."
    yield f"Next: {estimate.next_command}"


def _describe_bound(estimate: Estimate) -> Iterator[str]:
    if estimate.projection is None:
        yield "Time unknown: no object could be read in time."
        return
    bound = estimate.projection.bound
    yield f"Bound by {bound.sentence}. {_MORE_WORKERS.get(bound.cause, 'More workers do not help.')}"


def _describe_connections(estimate: Estimate) -> Iterator[str]:
    found = estimate.connections
    yield (
        f"Connections of {count(estimate.processes, 'worker process', 'worker processes')}: "
        f"{found['legacy']:,} to legacy, {found['production']:,} to production, "
        f"up to {found['postgresql']:,} to PostgreSQL."
    )


def _describe_measurement(estimate: Estimate) -> Iterator[str]:
    found = estimate.measurement
    if found is None:
        return
    what = "copied" if found.copied else "looked at"
    pace = f"{found.entries_per_second.estimate:,.0f}/s by one process, {found.in_flight:,} in flight"
    traffic = f", {show_bytes(found.bytes_per_second)}/s" if found.bytes_per_second else ""
    ended = "Interrupted, after" if found.is_interrupted else "Measured for"
    yield f"{ended} {found.seconds:.1f} s: {count(found.objects, 'object', 'objects')} {what}, {pace}{traffic}."
    if found.copied:
        outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in estimate.outcomes.items())
        yield f"Copied to production: {outcomes}. Rows were left as they are; the migration keeps these objects."


def draw_sizes(sizes: Sequence[int]) -> str:
    """Return the share of objects by size class in one line."""
    classes = classify_sizes(sizes)
    total = sum(number for _, number, _ in classes)
    parts: list[str] = []
    least = 0
    for most, number, _ in classes:
        if number:
            bar = _BARS[max(1, round(8 * number / total))]
            name = f"> {show_bytes(least)}" if most is None else f"≤ {show_bytes(most)}"
            parts.append(f"{name} {bar} {_show_share(number / total)}")
        least = most or least
    return ", ".join(parts)


def show_bytes(number: float) -> str:
    """Return bytes in the unit that fits, by powers of 1,000: `12.4 TB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 999.5 or unit == "TB":
            return f"{number:,.0f} {unit}" if unit == "B" or number >= 100 else f"{number:,.1f} {unit}"
        number /= 1000
    raise AssertionError(number)


def _show_number(number: float) -> str:
    return f"{number:,.0f}"


def _show_share(share: float) -> str:
    return f"{100 * share:.0f} %" if share in {0, 1} or share >= 0.1 else f"{100 * share:.1f} %"


def _show_price(price: float) -> str:
    return f"{price:,.2f}"


def _show_seconds(seconds: float) -> str:
    if not isfinite(seconds) or seconds > 10**10:
        return "no end"
    return format_duration(timedelta(seconds=seconds)) if seconds >= 1 or not seconds else "< 1 s"
