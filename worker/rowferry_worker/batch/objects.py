"""From the objects of a batch to its rows: which objects there are, and what became of all those of one row."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rowferry.batch import Entry, EntryResult, Outcome, name_key
from rowferry.errors import NotStarted, ObjectNotFound, ObjectRejected
from rowferry.keys import Form, ObjectKeys, map_entry
from rowferry.plan import Entries, SideName
from rowferry.s3.responses import BOTH_SIDES
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.scheduler import ObjectResult

_CHOOSE = "keep or replace it with `rowferry requeue --on-conflict`"
_DIFFERENT = "different object", f"a different object is at the production key: {_CHOOSE}"
_UNCLEAR = (
    "written together",
    f"a different object is at the production key, and the times do not tell which was written last: {_CHOOSE}",
)
"""Why an object is a conflict: in a few words that are equal for equal causes, and in a sentence."""


class MappedRow(Struct, frozen=True, gc=False):
    """An entry, its objects, and what its row is to hold; or why it has none."""

    entry: Entry
    objects: tuple[ObjectKeys, ...] = ()
    new_key: str = ""
    fault: ObjectRejected | None = None


def map_rows(entries: Iterable[Entry], plan: Entries, to: Form = "production") -> list[MappedRow]:
    """Return the objects and the new text of each entry, in their order."""
    return [_map_row(entry, plan, to) for entry in entries]


def _map_row(entry: Entry, plan: Entries, to: Form) -> MappedRow:
    try:
        objects, new_key = map_entry(entry, plan, to)
    except ValueError as error:
        return MappedRow(entry, fault=ObjectRejected("KeyCannotBeMapped", str(error)))
    return MappedRow(entry, objects, new_key)


def list_objects(rows: Iterable[MappedRow]) -> dict[str, str]:
    """Return the production key of each legacy key, each once."""
    return {keys.legacy: keys.production for row in rows for keys in row.objects}


def is_started(row: MappedRow, by_key: Mapping[str, ObjectResult]) -> bool:
    """Return whether all objects of a row were begun within the time budget."""
    return not any(isinstance(by_key[keys.legacy], NotStarted) for keys in row.objects)


def find_obstacle(row: MappedRow, by_key: Mapping[str, ObjectResult]) -> tuple[str | None, ObjectResult] | None:
    """Return the worst of what keeps a row where it is, with its legacy key; None: all its objects stand.

    Failed is worse than missing, missing than a conflict. An optional object may be missing.
    """
    if row.fault is not None:
        return None, row.fault
    obstacles = [
        (keys.legacy, by_key[keys.legacy])
        for keys in row.objects
        if not _stands(by_key[keys.legacy], is_required=keys.is_required)
    ]
    return min(obstacles, key=lambda each: _rank(each[1]), default=None)


def _stands(result: ObjectResult, *, is_required: bool) -> bool:
    if isinstance(result, CopyResult):
        return result.outcome is not Outcome.CONFLICT
    return is_missing(result) and not is_required


def is_missing(result: ObjectResult, of: SideName = "legacy") -> bool:
    """Return whether an object of a side is not there; a 404 of the other server says nothing of it.

    What the production server copies, it reads itself.
    """
    if not isinstance(result, ObjectNotFound):
        return False
    return result.side in {None, of} or (of == "legacy" and result.operation in BOTH_SIDES)


def _rank(result: ObjectResult) -> int:
    if isinstance(result, CopyResult):
        return 2
    return 1 if is_missing(result) else 0


def result_of(row: MappedRow, obstacle: tuple[str | None, ObjectResult], of: SideName = "legacy") -> EntryResult:
    """Return the result of an entry that an obstacle keeps where it is; `of`: the side of the objects it needs."""
    key, result = obstacle
    if isinstance(result, CopyResult):
        reason, words = _UNCLEAR if result.is_unclear else _DIFFERENT
        error = name_key(row.entry, key) + words
        return EntryResult(row.entry, result.outcome, reason=reason, error=error)
    outcome = Outcome.MISSING if is_missing(result, of) else Outcome.FAILED
    return EntryResult.from_error(row.entry, result, outcome, key)


class Arrivals:
    """Which objects were counted for a row: several rows may point at one, which was copied once."""

    def __init__(self, by_key: Mapping[str, ObjectResult]) -> None:
        self._by_key = by_key
        self._counted: set[str] = set()

    def count(self, objects: Sequence[ObjectKeys]) -> tuple[Outcome, int]:
        """Return the outcome of a row whose objects all stand, and the bytes that were written for it first."""
        outcome, size_bytes = Outcome.KEPT, 0
        for keys in objects:
            result = self._by_key[keys.legacy]
            if isinstance(result, CopyResult) and keys.legacy not in self._counted:
                self._counted.add(keys.legacy)
                size_bytes += result.size_bytes
                outcome = Outcome.MIGRATED if result.outcome is Outcome.MIGRATED else outcome
        return outcome, size_bytes
