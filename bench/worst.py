"""Figures that were seen on several servers, with the start and without: the worst of them is the target's."""

from collections.abc import Mapping, Sequence

from bench.record import INCLUDED, Record

STARTS = {"start excluded": "", "start included": INCLUDED}
"""The end of a figure's name, by what it is of."""


def list_medians(record: Record, servers: Sequence[str], who: str, figure: str) -> dict[str, float]:
    """Return the medians of a figure of a contestant, by server and, where it was seen both ways, by start."""
    found: dict[str, float] = {}
    for server in servers:
        name = f"{who}, {server}"
        seen = {
            start: record.median(name, figure + end)
            for start, end in STARTS.items()
            if record.values(name, figure + end)
        }
        found |= {f"{server}, {start}" if len(seen) > 1 else server: value for start, value in seen.items()}
    return found


def list_ratios(record: Record, servers: Sequence[str], ours: str, rival: str, figure: str) -> dict[str, float]:
    """Return the ratios of the medians of two contestants in the same way."""
    theirs = list_medians(record, servers, rival, figure)
    medians = list_medians(record, servers, ours, figure)
    return {where: seen / theirs[where] for where, seen in medians.items() if where in theirs}


def expect_worst(
    record: Record,
    what: str,
    seen: Mapping[str, float],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "",
    less_is_better: bool = False,
    tells_each: bool = False,
) -> None:
    """Note the worst as a target; nothing where none was seen. `tells_each`: report all of them as well."""
    if not seen:
        return
    server = (max if less_is_better or at_most is not None else min)(seen, key=seen.__getitem__)
    record.expect(what, seen[server], at_least=at_least, at_most=at_most, unit=unit, server=server)
    for where, figure in seen.items() if tells_each else ():
        record.expect(f"{what}: {where}", figure, unit=unit)
