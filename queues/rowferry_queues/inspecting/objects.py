"""The objects of a batch of `inspect`: which ones its entries name, and what was found of them."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rowferry.batch import Entry, EntryResult, Outcome
from rowferry.errors import NotStarted, ObjectError, ObjectNotFound, ObjectRejected
from rowferry.keys import find_objects, map_entry
from rowferry.plan import Entries, SideName
from rowferry_worker.scheduling.scheduler import ObjectResult


class NamedKey(Struct, frozen=True, gc=False):
    """An object that an entry names."""

    key: str
    is_required: bool = True
    """Whether it has to be there."""


class InspectedEntry(Struct, frozen=True, gc=False):
    """An entry and its objects."""

    entry: Entry
    keys: Sequence[NamedKey] = ()
    fault: ObjectError | None = None
    """Why none can be named."""

    def is_started(self, by_key: Mapping[str, ObjectResult]) -> bool:
        """Return whether all its objects were begun within the time budget."""
        return not any(isinstance(by_key[each.key], NotStarted) for each in self.keys)

    def find_obstacle(self, by_key: Mapping[str, ObjectResult]) -> EntryResult | None:
        """Return the result of an entry one of whose objects was not read; failed is worse than missing."""
        if self.fault is not None:
            return EntryResult.from_error(self.entry, self.fault)
        errors = [
            (each.key, found)
            for each in self.keys
            if isinstance(found := by_key[each.key], ObjectError)
            and (each.is_required or not isinstance(found, ObjectNotFound))
        ]
        if not errors:
            return None
        key, error = min(errors, key=lambda each: isinstance(each[1], ObjectNotFound))
        outcome = Outcome.MISSING if isinstance(error, ObjectNotFound) else Outcome.FAILED
        return EntryResult.from_error(self.entry, error, outcome, key)


def name_objects(entries: Iterable[Entry], plan: Entries, side: SideName) -> list[InspectedEntry]:
    """Return the objects that rows name on one side."""
    return [_name_objects(entry, plan, side) for entry in entries]


def _name_objects(entry: Entry, plan: Entries, side: SideName) -> InspectedEntry:
    try:
        if side == "production":
            found = [NamedKey(each.production, each.is_required) for each in find_objects(entry, plan)]
        else:
            found = [NamedKey(each.legacy, each.is_required) for each in map_entry(entry, plan).objects]
    except ValueError as error:
        return InspectedEntry(entry, fault=ObjectRejected("KeyCannotBeMapped", str(error)))
    return InspectedEntry(entry, found)
