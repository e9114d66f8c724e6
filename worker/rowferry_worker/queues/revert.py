"""The queue `revert`: point the rows of a batch back at their legacy objects, which are where they always were."""

import time
from collections.abc import Mapping

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.entry_sql import EntrySql
from rowferry.errors import ObjectNotFound, Withdrawn
from rowferry.keys import legacy_key
from rowferry.plan import Entries
from rowferry.s3_request import head_object
from rowferry_worker import metrics
from rowferry_worker.entries import Form, read_entries
from rowferry_worker.flight import Ended
from rowferry_worker.journey import Copied, Journey, ask
from rowferry_worker.rows import Move, update_rows
from rowferry_worker.travel import travel
from rowferry_worker.verbose import tell_rows
from rowferry_worker.work import Work

FORM: Form = "production"
WRITES_OBJECTS = False


def perform(work: Work) -> list[EntryResult]:
    """Put the production entries of the batch's range back to their legacy keys; return one result for each of them.

    MIGRATED: the row holds its legacy key again. KEPT: it stays production, since there is no legacy object.
    """
    entries = read(work)
    entry_sql = _entry_sql(work)
    old_keys = map_back(entries, entry_sql.entries)
    ends = travel(work, {key: find_legacy(old_key) for key, old_key in old_keys.items()})
    begun = work.leave_unbegun(entries, lambda entry: not isinstance(ends.get(entry.key), Withdrawn))
    moves, results = choose_moves(begun, old_keys, ends)
    work.pause(work.route.reserve_rows(len(moves)))
    began = time.monotonic()
    with metrics.row_update_seconds.time():
        updated = update_rows(work.connection, entry_sql, moves)
    tell_rows(updated, time.monotonic() - began)
    return results + updated


def read(work: Work) -> list[Entry]:
    """Return the entries of the batch's range that are production, in the order of their ids."""
    payload = work.batch.payload
    return read_entries(work.connection, _entry_sql(work), payload["first"], payload["last"], "production")


def map_back(entries: list[Entry], plan: Entries) -> dict[str, str]:
    """Return the legacy key of each production key, of those that can come from one."""
    old_keys: dict[str, str] = {}
    for entry in entries:
        try:
            old_keys[entry.key] = legacy_key(entry.key, plan)
        except ValueError:
            continue
    return old_keys


def find_legacy(key: str) -> Journey:
    """Ask for a legacy object. Raises ObjectNotFound when there is none."""
    yield from ask(head_object("legacy", key))
    return Copied(Outcome.MIGRATED)


def choose_moves(
    entries: list[Entry], old_keys: Mapping[str, str], ends: Mapping[str, Ended]
) -> tuple[list[Move], list[EntryResult]]:
    """Return the rows that have a legacy object to go back to, and the results of the others."""
    moves: list[Move] = []
    others: list[EntryResult] = []
    for entry in entries:
        end = ends.get(entry.key)
        if isinstance(end, Copied):
            moves.append(Move(entry, old_keys[entry.key], Outcome.MIGRATED, 0))
        elif end is None or isinstance(end, ObjectNotFound):
            others.append(EntryResult(entry, Outcome.KEPT))
        else:
            others.append(EntryResult.from_error(entry, end))
    return moves, others


def _entry_sql(work: Work) -> EntrySql:
    return work.route.entries(work.connection, work.batch.payload["entries"])
