"""Holds numbers that a column of changes is said to have against the times that they could be."""

import time
from collections.abc import Sequence
from dataclasses import replace

from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, UserTable
from rowferry_cli.discover.proposals import Proposal

_FIRST, _AHEAD = 631_152_000, 86_400
"""1990, and how far ahead a clock may be: seconds. What is outside of that is no time of a change."""
_SCALES = (1, 10**3, 10**6, 10**9)
"""Seconds, milliseconds, microseconds and nanoseconds."""


def tell_changes(catalogue: Catalogue, proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Return the proposals, `changed` only where the column holds times."""
    return [one if _holds_times(catalogue, one, most) else _leave_out(one) for one in proposals]


def _holds_times(catalogue: Catalogue, proposal: Proposal, most: int) -> bool:
    table, changed = catalogue.find_table(proposal.entries["table"]), proposal.entries.get("changed")
    if table is None or changed is None or table.columns[changed].type.startswith(("timestamp", "date")):
        return True
    return _are_times(_read_numbers(catalogue, table, table.columns[changed], most))


def _read_numbers(catalogue: Catalogue, table: UserTable, column: Column, most: int) -> list[float]:
    """Return the numbers that sampled rows hold; a zero is none, as a null."""
    rows = catalogue.sample_column(table, column, most)
    return [number for row in rows if (number := float(row.value))]


def _are_times(numbers: Sequence[float]) -> bool:
    latest = time.time() + _AHEAD
    return any(all(_FIRST * scale < number < latest * scale for number in numbers) for scale in _SCALES)


def _leave_out(proposal: Proposal) -> Proposal:
    entries = {name: value for name, value in proposal.entries.items() if name != "changed"}
    about = f"{proposal.entries['changed']} holds no times, so `changed` cannot name it."
    return replace(proposal, entries=entries, if_stays=[*proposal.if_stays, about])
