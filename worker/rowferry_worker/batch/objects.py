"""A row's objects → its outcome: which objects the rows of a batch name, and how what became of these is judged."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from rowferry.batch import Entry, EntryResult, Outcome, name_key
from rowferry.errors import NotStarted, ObjectConflict, ObjectError, ObjectNotFound, ObjectRejected, RowferryError
from rowferry.keys import Form, ObjectKeys, StandingObject, find_objects, map_entry, map_plain
from rowferry.plan import Entries, SideName
from rowferry.s3.operations import BOTH_SIDES
from rowferry_worker.copying.copy import CopyResult

End = CopyResult | RowferryError
"""How the work on one object ended."""

_CHOOSE = "keep or replace it with `rowferry requeue --on-conflict`"
_DIFFERENT = "different object", f"a different object is at the production key: {_CHOOSE}"
_UNCLEAR = (
    "written together",
    f"a different object is at the production key, and the times do not tell which was written last: {_CHOOSE}",
)
"""Why an object is a conflict: in a few words that are equal for equal causes, and in a sentence."""


class MappedRow(Struct, frozen=True, gc=False):
    """An entry, its objects, and what its row is to hold, if it is to change; or why it has no objects."""

    entry: Entry
    objects: tuple[ObjectKeys | StandingObject, ...] = ()
    new_key: str = ""
    fault: ObjectError | None = None
    is_whole: bool = True
    """Whether these are all its objects: a folder may have more than one attempt takes."""

    def list_keys(self, side: SideName) -> list[str]:
        """Return the keys of its objects on a side."""
        return [getattr(each, side) for each in self.objects]


Row = TypeVar("Row", bound=MappedRow)


def map_rows(entries: Sequence[Entry], plan: Entries, to: Form = "production") -> list[MappedRow]:
    """Return the objects and the new text of each entry, in their order."""
    mapped = zip(entries, map_plain(entries, plan, to), strict=True)
    return [MappedRow(entry, *plain) if plain else _map_row(entry, plan, to) for entry, plain in mapped]


def _map_row(entry: Entry, plan: Entries, to: Form) -> MappedRow:
    try:
        objects, new_key = map_entry(entry, plan, to)
    except ValueError as error:
        return MappedRow(entry, fault=ObjectRejected("KeyCannotBeMapped", str(error)))
    return MappedRow(entry, objects, new_key)


def find_rows(entries: Sequence[Entry], plan: Entries, side: SideName) -> list[MappedRow]:
    """Return the objects that each entry names on a side, in their order, where no row is to change."""
    return map_rows(entries, plan) if side == "legacy" else [_find_row(entry, plan) for entry in entries]


def _find_row(entry: Entry, plan: Entries) -> MappedRow:
    try:
        return MappedRow(entry, tuple(find_objects(entry, plan)))
    except ValueError as error:
        return MappedRow(entry, fault=ObjectRejected("KeyCannotBeMapped", str(error)))


def list_objects(rows: Iterable[MappedRow]) -> dict[str, str]:
    """Return the production key of each legacy key of rows that were mapped, each once."""
    return {keys.legacy: keys.production for row in rows for keys in row.objects if keys.legacy is not None}


class Judge:
    """Judges rows by how the work on their objects ended.

    The worst object decides: FAILED is worse than MISSING, MISSING than CONFLICT. An optional object may be missing.
    Several rows may point at one object: what was done with it counts for the first row whose objects all stand.
    """

    def __init__(
        self,
        by_key: Mapping[str, End],
        side: SideName = "legacy",
        *,
        keys_of: SideName | None = None,
        excused: type[ObjectNotFound] = ObjectNotFound,
    ) -> None:
        """`by_key`: how the work ended, by the keys of `side`, or else of `keys_of`.

        `side`: that of the objects which a row needs; `excused`: the error by which an optional one is not there.
        """
        self._by_key, self._excused = by_key, excused
        self._side: SideName = side
        self._keys_of: SideName = keys_of or side
        self._counted: set[str] = set()
        self._all_started = not any(issubclass(kind, NotStarted) for kind in set(map(type, by_key.values())))
        self._obstacles = {
            key for key, end in by_key.items() if not isinstance(end, CopyResult) or end.outcome in _RANKS
        }

    def split_started(self, rows: Sequence[Row], *, leave_range: bool = False) -> tuple[list[Row], list[Entry]]:
        """Return the rows before the first that was not started, and the entries from that one on: they are the rest.

        `leave_range`: rows behind it that may move leave the batch's range, so they are among the first as well.
        """
        if self._all_started and all(row.is_whole for row in rows):
            return [*rows], []
        first = next((index for index, row in enumerate(rows) if not self.is_started(row)), len(rows))
        behind = [row for row in rows[first:] if leave_range and self._may_move(row)]
        return [*rows[:first], *behind], [row.entry for row in rows[first:]]

    def _may_move(self, row: MappedRow) -> bool:
        return self.is_started(row) and self.find_obstacle(row) is None

    def is_started(self, row: MappedRow) -> bool:
        """Return whether all objects of a row were begun within the time budget."""
        ends = [] if self._all_started else [self._by_key[key] for key in row.list_keys(self._keys_of)]
        return row.is_whole and not any(isinstance(end, NotStarted) for end in ends)

    def judge(self, row: MappedRow) -> EntryResult:
        """Return the result of a row that is not to change."""
        return self.find_obstacle(row) or EntryResult(row.entry, *self.count(row))

    def find_obstacle(self, row: MappedRow) -> EntryResult | None:
        """Return the result of a row by its worst object, which is named; None: all its objects stand."""
        if row.fault is not None:
            return EntryResult.from_error(row.entry, row.fault, self._name_outcome(row.fault))
        if not self._obstacles:
            return None
        worst: tuple[Outcome, str, End] | None = None
        for keys, key in zip(row.objects, row.list_keys(self._keys_of), strict=True):
            end = self._by_key[key]
            if key not in self._obstacles or (not keys.is_required and self._is_excused(end)):
                continue
            outcome = self._name_outcome(end)
            if worst is None or _RANKS[outcome] < _RANKS[worst[0]]:
                worst = outcome, key, end
        return worst and _describe(row.entry, *worst)

    def count(self, row: MappedRow) -> tuple[Outcome, int]:
        """Return the outcome of a row whose objects all stand, and the bytes that were written for it first."""
        outcome, size_bytes = Outcome.KEPT, 0
        for key in row.list_keys(self._keys_of):
            end = self._by_key[key]
            if isinstance(end, CopyResult) and key not in self._counted:
                self._counted.add(key)
                size_bytes += end.size_bytes
                outcome = Outcome.MIGRATED if end.outcome is Outcome.MIGRATED else outcome
        return outcome, size_bytes

    def _name_outcome(self, end: End) -> Outcome:
        if isinstance(end, CopyResult):
            return end.outcome
        if isinstance(end, ObjectConflict):
            return Outcome.CONFLICT
        return Outcome.MISSING if is_missing(end, self._side) else Outcome.FAILED

    def _is_excused(self, end: End) -> bool:
        return isinstance(end, self._excused) and is_missing(end, self._side)


_RANKS = {Outcome.FAILED: 0, Outcome.MISSING: 1, Outcome.CONFLICT: 2}


def is_missing(end: End, side: SideName = "legacy") -> bool:
    """Return whether an object of a side is not there; a 404 of the other server says nothing of it.

    What the production server copies, it reads itself.
    """
    if not isinstance(end, ObjectNotFound):
        return False
    return end.side in {None, side} or (side == "legacy" and end.operation in BOTH_SIDES)


def _describe(entry: Entry, outcome: Outcome, key: str, end: End) -> EntryResult:
    if not isinstance(end, CopyResult):
        return EntryResult.from_error(entry, end, outcome, key)
    reason, words = _UNCLEAR if end.is_unclear else _DIFFERENT
    return EntryResult(entry, outcome, reason=reason, error=name_key(entry, key) + words)
