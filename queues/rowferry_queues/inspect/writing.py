"""Writes the facts of a batch's objects: into the rows of its entries, or into a table beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import MigrationFault, ObjectRejected
from rowferry.keys import OTHER
from rowferry_queues.inspect.spec import InspectSettings
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.objects import Judge, MappedRow
from rowferry_worker.batch.row_update import RowChange, find_excused, update_rows
from rowferry_worker.batch.rows import wait_for_turn
from rowferry_worker.batch.sources import updates_table
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.batch.writes import upsert
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.copy_run import ObjectResult

Found = Mapping[Entry, list[tuple[str, CopyResult]]]
"""The objects of each row that were read, with their keys."""


def write_facts(
    context: BatchContext, settings: InspectSettings, rows: Sequence[MappedRow], by_key: Mapping[str, ObjectResult]
) -> list[EntryResult]:
    """Write what was found of the objects of rows; return a result for each, in their order of ids."""
    judge, results = Judge(by_key, settings.side), list[EntryResult]()
    found: dict[Entry, list[tuple[str, CopyResult]]] = {}
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
    changes = [
        RowChange(entry, _list_values(one, settings), size_bytes=one.size_bytes) for entry, ((_, one),) in found.items()
    ]
    columns = list(settings.columns.values())
    return update_rows(context.connection, find_queries(context), changes, OTHER[settings.side], columns)


def _write_side_table(context: BatchContext, settings: InspectSettings, found: Found) -> list[EntryResult]:
    """Write facts by one upsert; what rows name by now, after the time that it took to read, is looked at first."""
    assert settings.table is not None
    assert settings.key is not None
    excused: Mapping[str, EntryResult] = {}
    if updates_table(context.batch.payload):
        excused = find_excused(context.connection, find_queries(context), [*found], settings.side)
    rows: list[list[Any]] = []
    for entry, objects in found.items():
        if entry.id not in excused:
            rows += [[key, *_list_values(one, settings)] for key, one in objects]
    with context.steps.step("update"):
        columns = list(settings.columns.values())
        upserted = iter(upsert(context.connection, settings.table, [settings.key], columns, rows))
    results: list[EntryResult] = []
    for entry, objects in found.items():
        became = [(one, next(upserted)) for _, one in objects if entry.id not in excused]
        refusal = next((end for _, end in became if not isinstance(end, bool)), None)
        written = [one for one, end in became if end is True]
        outcome = Outcome.MIGRATED if written else Outcome.KEPT
        result = EntryResult(entry, outcome, sum(one.size_bytes for one in written))
        results.append(excused.get(entry.id) or (EntryResult.from_error(entry, refusal) if refusal else result))
    return results


def _list_values(one: CopyResult, settings: InspectSettings) -> list[Any]:
    return [one.value[fact] for fact in settings.columns]
