"""Writes the facts of a batch's objects: into the rows of its entries, or into a table beside them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import json

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.db.description import describe_columns
from rowferry.errors import MigrationFault, ObjectRejected
from rowferry.keys import OTHER
from rowferry_queues.inspect.spec import FACTS, InspectSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.objects import Judge, MappedRow
from rowferry_worker.batch.row_update import RowChange, find_excused, update_rows
from rowferry_worker.batch.rows import wait_for_turn
from rowferry_worker.batch.sources import updates_table
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.batch.writes import Upserted, upsert
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.copy_run import ObjectResult

Objects = list[tuple[str, CopyResult]]
Found = Mapping[Entry, Objects]
"""The objects of each row that were read, with their keys."""


def write_facts(
    context: BatchContext, settings: InspectSettings, rows: Sequence[MappedRow], by_key: Mapping[str, ObjectResult]
) -> list[EntryResult]:
    """Write what was found of the objects of rows; return a result for each, in their order of ids."""
    judge, results = Judge(by_key, settings.side), list[EntryResult]()
    found: dict[Entry, Objects] = {}
    for row in rows:
        read = [(key, each) for key in row.list_keys(settings.side) if isinstance(each := by_key[key], CopyResult)]
        if obstacle := judge.find_obstacle(row):
            results.append(obstacle)
        elif len(read) > 1 and settings.key is None:
            words = "it has several objects, and one row for their facts: name a `table` with a `key` for them"
            results.append(EntryResult.from_error(row.entry, ObjectRejected("SeveralObjects", words)))
        elif not read:
            results.append(EntryResult(row.entry, Outcome.KEPT))
        else:
            found[row.entry] = read
    wait_for_turn(context, len(found))
    write = _write_own_columns if settings.table is None else _write_side_table
    return results + write(context, settings, found)


def _write_own_columns(context: BatchContext, settings: InspectSettings, found: Found) -> list[EntryResult]:
    if not updates_table(context.batch.payload):
        raise MigrationFault("Objects without rows have no columns: name a `table` in [queue.inspect].")
    queries = find_queries(context)
    choose = _find_choice(context, settings, queries.entries.table)
    changes = [RowChange(entry, choose(one), size_bytes=one.size_bytes) for entry, ((_, one),) in found.items()]
    return update_rows(context.connection, queries, changes, OTHER[settings.side], list(settings.columns.values()))


def _write_side_table(context: BatchContext, settings: InspectSettings, found: Found) -> list[EntryResult]:
    """Write facts by one upsert; what rows name by now, after the time that it took to read, is looked at first."""
    assert settings.table is not None
    excused: Mapping[str, EntryResult] = {}
    if updates_table(context.batch.payload):
        excused = find_excused(context.connection, find_queries(context), [*found], settings.side)
    choose = _find_choice(context, settings, settings.table)
    rows: dict[tuple[Entry, str], list[Any]] = {}
    for entry, objects in found.items():
        ids = [entry.id] if len(settings.ids) == 1 else json.decode(entry.id) if settings.ids else []
        for key, one in objects if entry.id not in excused else ():
            rows[entry, key] = [*ids, *([key] if settings.key else []), *choose(one)]
    with context.steps.step("update"):
        columns = list(settings.columns.values())
        upserted = upsert(context.connection, settings.table, settings.keys, columns, [*rows.values()])
    became = dict(zip(rows, upserted, strict=True))
    return [excused.get(entry.id) or _judge(entry, objects, became) for entry, objects in found.items()]


def _judge(entry: Entry, objects: Objects, became: Mapping[tuple[Entry, str], Upserted]) -> EntryResult:
    """Return the result of an entry: the first refusal, else whether a row was written."""
    for key, _ in objects:
        if not isinstance(refusal := became[entry, key], bool):
            return EntryResult.from_error(entry, refusal)
    written = [one for key, one in objects if became[entry, key]]
    return EntryResult(entry, Outcome.MIGRATED if written else Outcome.KEPT, sum(one.size_bytes for one in written))


def _find_choice(context: BatchContext, settings: InspectSettings, table: str) -> Callable[[CopyResult], list[Any]]:
    """Return what chooses the values of an object's row in the order of the columns: digests as bytes for a bytea."""
    digests = [column for fact, column in settings.columns.items() if FACTS.get(fact) == "digest"]
    described = describe_columns(context.connection, table, digests) or {}
    binary = {name for name, column in described.items() if column.type == "bytea"}
    return lambda one: [
        bytes.fromhex(one.value[fact]) if column in binary else one.value[fact]
        for fact, column in settings.columns.items()
    ]
