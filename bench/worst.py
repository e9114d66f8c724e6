"""Figures that were seen on several servers, with the start and without: the worst of them is the target's."""

from collections.abc import Mapping, Sequence
from statistics import median

from bench.record import INCLUDED, Record

STARTS = {"start excluded": "", "start included": INCLUDED}
"""The end of a figure's name, by what it is of."""


def list_medians(record: Record, servers: Sequence[str], who: str, figure: str) -> dict[str, float]:
    """Return the medians of a figure of a contestant, by server and, where a whole run was measured, by start."""
    found: dict[str, float] = {}
    for server in servers:
        seen = _list_starts(record, f"{who}, {server}", figure)
        found |= {_name(server, start, seen): value for start, value in seen.items()}
    return found


def list_ratios(record: Record, servers: Sequence[str], ours: str, rival: str, figure: str) -> dict[str, float]:
    """Return the ratios of the medians of two contestants in the same way: with the start or without, both alike."""
    found: dict[str, float] = {}
    for server in servers:
        seen, theirs = (_list_starts(record, f"{who}, {server}", figure) for who in (ours, rival))
        found |= {_name(server, start, seen): value / theirs[start] for start, value in seen.items() if start in theirs}
    return found


def _list_starts(record: Record, who: str, figure: str) -> dict[str, float]:
    """Return the medians of a figure of a contestant on one server, by start, where each repetition has it."""
    found = {start: record.values(who, figure + end) for start, end in STARTS.items()}
    runs = max(map(len, found.values()))
    return {start: median(values) for start, values in found.items() if values and len(values) == runs}


def _name(server: str, start: str, seen: Mapping[str, float]) -> str:
    return f"{server}, {start}" if "start included" in seen else server


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
