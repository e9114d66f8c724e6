"""Finds by their values which columns of a table hold times, and which of these is set when a row changes."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from psycopg import sql

from rowferry.db.connection import identifiers
from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, UserTable
from rowferry_cli.discover.proposals import Proposal

_NUMBERS = ("integer", "bigint", "numeric", "double precision")
_FIRST, _AHEAD = 631_152_000, 86_400
"""1990, and how far ahead a clock may be: seconds. What is outside of that is no time of a change."""
_SCALES = (1, 10**3, 10**6, 10**9)
"""Seconds, milliseconds, microseconds and nanoseconds."""
LEAST_LATER = 3
"""Rows in which a time of changes must be later than one that is set once."""

Times = Mapping[str, Sequence[float | None]]
"""Seconds since 1970 in each sampled row, by column."""


def tell_changes(catalogue: Catalogue, proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Return the proposals; `changed` only where the column holds times, and what else could be one as a comment."""
    known: dict[str, Times] = {}
    told: list[Proposal] = []
    for one in proposals:
        table = catalogue.find_table(one.entries["table"])
        if table is None or one.entries.get("rows") != "stay":
            told.append(one)
            continue
        if table.plan_name not in known:
            known[table.plan_name] = _read_times(catalogue, table, most)
        told.append(_tell(one, table, known[table.plan_name]))
    return told


def _tell(proposal: Proposal, table: UserTable, times: Times) -> Proposal:
    changed = proposal.entries.get("changed")
    if changed in times or (changed is not None and table.columns[changed].type not in _NUMBERS):
        return proposal
    entries = {name: value for name, value in proposal.entries.items() if name != "changed"}
    about = [f"{changed} holds no times, so `changed` cannot name it."] if changed else []
    if likely := _find_likely(times):
        last, first, later = likely
        about.append(
            f"{last} may say when a row changed: it is never before {first}, and later in {later:,} of "
            f'{len(times[last]):,} sampled rows. If each change sets it, write: changed = "{last}"'
        )
    return replace(proposal, entries=entries, if_stays=[*proposal.if_stays, *about])


def _find_likely(times: Times) -> tuple[str, str, int] | None:
    """Return the column that is never before the others, one that it is later than, and in how many rows it is."""
    for last, values in times.items():
        others = [name for name in times if name != last]
        if not others or any(value is None for value in values):
            continue
        later = {name: _count_later(values, times[name]) for name in others}
        if all(number is not None for number in later.values()):
            first, number = max(later.items(), key=lambda pair: pair[1] or 0)
            if number and number >= LEAST_LATER:
                return last, first, number
    return None


def _count_later(values: Sequence[float | None], others: Sequence[float | None]) -> int | None:
    """Return in how many rows one time is later than another; None if it is earlier in any."""
    pairs = [(one, other) for one, other in zip(values, others, strict=True) if one is not None and other is not None]
    return None if any(one < other for one, other in pairs) else sum(one > other for one, other in pairs)


def _read_times(catalogue: Catalogue, table: UserTable, most: int) -> Times:
    columns = [column for column in table.columns.values() if _may_be_time(column) and column.name not in table.id]
    if not columns:
        return {}
    value = sql.SQL("json_build_array({})::text").format(sql.SQL(", ").join(map(_read_seconds, columns)))
    rows = catalogue.sample(table, value, sql.SQL("true"), most, named=table.plan_name)
    read: list[list[float | None]] = [json.loads(row.value) for row in rows]
    found = {column.name: _scale([row[number] for row in read], column) for number, column in enumerate(columns)}
    return {name: values for name, values in found.items() if values is not None}


def _may_be_time(column: Column) -> bool:
    return column.type.startswith(("timestamp", "date")) or column.type.partition("(")[0] in _NUMBERS


def _read_seconds(column: Column) -> sql.Composable:
    name = sql.SQL("e.{}").format(identifiers(column.name))
    is_number = column.type.partition("(")[0] in _NUMBERS
    finite = sql.SQL("case when isfinite({name}) then extract(epoch from {name}) end").format(name=name)
    return name if is_number else finite


def _scale(values: Sequence[float | None], column: Column) -> list[float | None] | None:
    """Return times in seconds; None where numbers are no times. A zero is no time, as a null is none."""
    if column.type.startswith(("timestamp", "date")):
        return list(values)
    found = [value or None for value in values]
    set_ones = [value for value in found if value is not None]
    if not set_ones:
        return found
    for scale in _SCALES:
        if all(_FIRST * scale < value < (time.time() + _AHEAD) * scale for value in set_ones):
            return [None if value is None else value / scale for value in found]
    return None
