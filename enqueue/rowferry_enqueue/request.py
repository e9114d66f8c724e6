"""What a pass is asked for, and what it has added."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.errors import UsageError
from rowferry.formatting import count_batches, count_entries
from rowferry.plan import Entries, ObjectPrefix, OnConflict, Plan
from rowferry_enqueue.id_values import split_id

READ_AGAIN = ("migrated", "kept")
"""Outcomes whose entries the next attempt reads again, where no row says what was done."""
Repair = Literal["nothing", "older", "all"]
"""What `verify` copies again: nothing; what is missing or older than its legacy object; all that differs."""


@dataclass(frozen=True, slots=True)
class Within:
    """Limits a request to one table, or to a range of its ids, both ends included; all None: no limit."""

    table: str | None = None
    """A table, `table.key`, or the label of [[objects]], as the plan names it."""
    first: str | None = None
    last: str | None = None

    def choose_objects(self, plan: Plan) -> Sequence[ObjectPrefix]:
        """Return the [[objects]] that are meant."""
        return [objects for objects in plan.objects if self.table in {None, objects.label}]

    def choose(self, plan: Plan) -> Sequence[Entries]:
        """Return the [[entries]] that are meant. Raises UsageError where nothing is, or ids of several tables."""
        chosen = [entries for entries in plan.entries if self.table in {None, entries.table, entries.label}]
        objects = self.choose_objects(plan)
        if not chosen and not objects:
            known = [*(entries.table for entries in plan.entries), *(objects.label for objects in plan.objects)]
            raise UsageError(f"The plan has no table {self.table}; it has {', '.join(dict.fromkeys(known))}.")
        if (self.first or self.last) and objects and (chosen or len(objects) > 1):
            raise UsageError("The ids are those of one table, or keys of one [[objects]]: name it with --table.")
        if (self.first or self.last) and len({(entries.table, entries.ids) for entries in chosen}) > 1:
            raise UsageError("The ids are those of one table: name it with --table.")
        return chosen

    def list_bounds(self, entries: Entries) -> dict[Literal["is_from", "is_until"], Sequence[str]]:
        """Return the values of the bounds that are given. Raises UsageError where one is no id of these entries."""
        found: dict[Literal["is_from", "is_until"], Sequence[str]] = {}
        if self.first is not None:
            found["is_from"] = split_id(self.first, entries, "--first")
        if self.last is not None:
            found["is_until"] = split_id(self.last, entries, "--last")
        return found


@dataclass(frozen=True, slots=True)
class Request:
    """Which batches to make, and what their workers shall do."""

    batch_size: int = DEFAULT_BATCH_SIZE
    limit: int | None = None
    """Entries at most, over all tables."""
    on_conflict: OnConflict | None = None
    """What to do with a different production object; None: "fail", and "older" where no row moves."""
    queue: Literal["migrate", "verify", "revert"] = "migrate"
    within: Within = Within()
    deep: bool = False
    """verify: read the bytes of both objects, even if their ETags are equal."""
    repair: Repair = "nothing"
    is_first: bool = True
    """Whether it is the first pass of a run: only that lists [[objects]] and takes entries whose rows stay."""
    switched_at: datetime | None = None
    """Production objects that were written since are the application's own: those that differ are kept."""

    @property
    def form(self) -> Literal["legacy", "production"]:
        """The form of the keys that the queue works on."""
        return "legacy" if self.queue == "migrate" else "production"

    @property
    def is_whole(self) -> bool:
        """Whether all entries of the tables are meant."""
        return self.limit is None and self.within == Within()

    def replaces(self, entries: Entries) -> bool:
        """Return whether different objects may be replaced at the production keys of entries."""
        if self.queue != "migrate":
            return self.repair != "nothing"
        chosen = self.choices_of_pass if entries.rows == "stay" else self.choices
        return chosen.get("on_conflict") in {"older", "overwrite"}

    @property
    def choices(self) -> dict[str, Any]:
        """The payload of a batch, beside its range.

        `read_again` names the outcomes whose entries the next attempt at a batch reads again.
        """
        match self.queue:
            case "verify":
                return {"deep": self.deep, "repair": self.repair, "read_again": READ_AGAIN, **self._switched}
            case "revert":
                return {"read_again": ["kept"]}
            case _:
                return {"on_conflict": self.on_conflict or "fail"}

    @property
    def choices_of_pass(self) -> dict[str, Any]:
        """The same for [[objects]], and for entries whose rows stay: they look as before once they are copied."""
        return {"on_conflict": self.on_conflict or "older", "read_again": READ_AGAIN, **self._switched}

    @property
    def _switched(self) -> dict[str, str]:
        return {"switched_at": self.switched_at.isoformat()} if self.switched_at else {}


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The batches that one pass added, or would add, for one table."""

    label: str
    batches: int
    entries: int
    is_listing: bool = False
    """Whether these are [[objects]], whose entries workers count."""
    goes_on: bool = False
    """No row moves, and batches of an earlier pass wait: no other begins before they have ended."""
    held_back_by: str | None = None
    """What makes the next pass take more rows than it had to, in words; None: nothing."""

    def __str__(self) -> str:
        """Return it in words."""
        goes_on = ", as the pass before has not ended" if self.goes_on else ""
        if self.is_listing:
            return f"{self.label}: {'a' if self.batches else 'no'} listing{goes_on}"
        return f"{self.label}: {count_entries(self.entries)} in {count_batches(self.batches)}{goes_on}"
