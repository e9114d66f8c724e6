"""Writes the facts of a batch's objects: into the rows of its entries, or into a table beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.connection import Connection
from rowferry.db.written_tables import describe_columns
from rowferry.errors import MigrationFault, ObjectRejected
from rowferry.plan import SideName
from rowferry_queues.inspect.spec import FACTS, InspectSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.objects import Judge, MappedRow
from rowferry_worker.batch.row_values import NewValues, update_values
from rowferry_worker.batch.rows import find_excused, wait_for_turn
from rowferry_worker.batch.sources import updates_table
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.batch.writes import Upserted, upsert
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.scheduler import ObjectResult


def write_facts(
    context: BatchContext,
    settings: InspectSettings,
    entries: Sequence[MappedRow],
    by_key: Mapping[str, ObjectResult],
) -> list[EntryResult]:
    """Write what was found of the objects of entries; return a result for each, in their order of ids."""
    judge = Judge(by_key, settings.side)
    obstacles = {each.entry: obstacle for each in entries if (obstacle := judge.find_obstacle(each)) is not None}
    read = [each for each in entries if each.entry not in obstacles]
    wait_for_turn(context, len(read))
    write = _write_own_columns if settings.table is None else _write_side_table
    return [*obstacles.values(), *write(context, settings, read, by_key)]


def _write_own_columns(
    context: BatchContext,
    settings: InspectSettings,
    entries: Sequence[MappedRow],
    by_key: Mapping[str, ObjectResult],
) -> list[EntryResult]:
    """Write facts into the rows of the entries; an entry without a single object has none to write."""
    if not updates_table(context.batch.payload):
        raise MigrationFault("Objects without rows have no columns: name a `table` in [queue.inspect].")
    queries = find_queries(context)
    choose = _Values(context.connection, settings, queries.entries.table)
    changes: list[NewValues] = []
    others: list[EntryResult] = []
    for each in entries:
        found = _list_found(each, settings.side, by_key)
        if len(found) == 1:
            changes.append(NewValues(each.entry, choose(found[0][1]), found[0][1].size_bytes))
        else:
            others.append(_refuse_several(each.entry) if found else EntryResult(each.entry, Outcome.KEPT))
    columns = list(settings.columns.values())
    return others + update_values(context.connection, queries, settings.side, columns, changes)


def _write_side_table(
    context: BatchContext,
    settings: InspectSettings,
    entries: Sequence[MappedRow],
    by_key: Mapping[str, ObjectResult],
) -> list[EntryResult]:
    """Write facts by one upsert; what rows name by now, after the time that it took to read, is looked at first."""
    assert settings.table is not None
    excused: Mapping[str, EntryResult] = {}
    if updates_table(context.batch.payload):
        excused = find_excused(
            context.connection, find_queries(context), [each.entry for each in entries], settings.side
        )
    meant = [each for each in entries if each.entry.id not in excused]
    choose = _Values(context.connection, settings, settings.table)
    rows: list[list[Any]] = []
    owners: list[tuple[Entry, CopyResult]] = []
    several: list[EntryResult] = []
    for each in meant:
        named = _list_found(each, settings.side, by_key)
        if len(named) > 1 and settings.key is None:
            several.append(_refuse_several(each.entry))
            continue
        for key, found in named:
            rows.append([*_read_ids(each.entry, settings), *_list_key(settings, key), *choose(found)])
            owners.append((each.entry, found))
    refused = {each.entry for each in several}
    columns = list(settings.columns.values())
    with context.steps.step("update"):
        upserted = upsert(context.connection, settings.table, settings.keys, columns, rows)
    by_entry: dict[Entry, list[tuple[Upserted, CopyResult]]] = {}
    for (entry, found), became in zip(owners, upserted, strict=True):
        by_entry.setdefault(entry, []).append((became, found))
    judged = (_judge(each.entry, by_entry.get(each.entry, ())) for each in meant if each.entry not in refused)
    return [*excused.values(), *several, *judged]


def _list_found(row: MappedRow, side: SideName, by_key: Mapping[str, ObjectResult]) -> list[tuple[str, CopyResult]]:
    """Return the objects of a row that were read, by their keys."""
    return [(key, found) for key in row.list_keys(side) if isinstance(found := by_key[key], CopyResult)]


def _refuse_several(entry: Entry) -> EntryResult:
    words = "it has several objects, and one row for their facts: name a `table` with a `key` in [queue.inspect]"
    return EntryResult.from_error(entry, ObjectRejected("SeveralObjects", words))


def _judge(entry: Entry, upserted: Sequence[tuple[Upserted, CopyResult]]) -> EntryResult:
    """Return the result of an entry: the first refusal, else whether a row was written."""
    for became, _ in upserted:
        if not isinstance(became, bool):
            return EntryResult.from_error(entry, became)
    size_bytes = sum(found.size_bytes for became, found in upserted if became)
    outcome = Outcome.MIGRATED if any(became for became, _ in upserted) else Outcome.KEPT
    return EntryResult(entry, outcome, size_bytes)


def _read_ids(entry: Entry, settings: InspectSettings) -> list[str]:
    """Return the values of the columns of `id`."""
    if len(settings.ids) < 2:
        return [entry.id] if settings.ids else []
    return msgspec.json.decode(entry.id, type=list[str])


def _list_key(settings: InspectSettings, key: str) -> list[str]:
    return [] if settings.key is None else [key]


class _Values:
    """Chooses the values of one object's row, in the order of the plan's columns."""

    def __init__(self, connection: Connection, settings: InspectSettings, table: str) -> None:
        """Look for digests that go into columns of bytes."""
        digests = [column for fact, column in settings.columns.items() if FACTS.get(fact) == "digest"]
        found = describe_columns(connection, table, digests) if digests else {}
        self._names = [
            (fact, column in found and found[column].type == "bytea") for fact, column in settings.columns.items()
        ]

    def __call__(self, result: CopyResult) -> list[Any]:
        facts: Mapping[str, Any] = result.value
        return [bytes.fromhex(facts[name]) if is_bytes else facts[name] for name, is_bytes in self._names]
