"""What an enqueue asks for: which entries, cut how, for which queue, with which choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rowferry.errors import UserMistake
from rowferry.plan import Entries, OnConflict, Plan

DEFAULT_BATCH_SIZE = 100
"""Entries in a batch. A batch is what is lost when a worker dies and what an operator requeues."""

Repair = Literal["nothing", "older", "all"]
"""What `verify` copies again: nothing; what is missing or older than its legacy object; whatever differs."""


@dataclass(frozen=True, slots=True)
class Within:
    """Which entries of the plan are meant; all of them, unless something is set."""

    table: str | None = None
    """A table, or `table.key`, as the plan names it."""
    first: str | None = None
    last: str | None = None
    """The first and the last id, both included."""

    def choose(self, plan: Plan) -> Sequence[Entries]:
        """Return the [[entries]] that are meant. Raises UserMistake where none is, or the ids are not of one table."""
        chosen = [entries for entries in plan.entries if self.table in {None, entries.table, entries.label}]
        if not chosen:
            known = ", ".join(dict.fromkeys(entries.table for entries in plan.entries))
            raise UserMistake(f"The plan has no table {self.table}; it has {known}.")
        if (self.first or self.last) and len({(entries.table, entries.id) for entries in chosen}) > 1:
            raise UserMistake("The ids are those of one table: name it with --table.")
        return chosen


@dataclass(frozen=True, slots=True)
class Request:
    """How a pass cuts and what its batches ask for."""

    batch_size: int = DEFAULT_BATCH_SIZE
    limit: int | None = None
    """Entries at most, over all tables; None: all of them."""
    on_conflict: OnConflict = "fail"
    queue: Literal["migrate", "verify", "revert"] = "migrate"
    within: Within = Within()
    deep: bool = False
    """verify: read the bytes of both objects, whatever their ETags say."""
    repair: Repair = "nothing"
    """verify: what to copy again."""

    @property
    def form(self) -> Literal["legacy", "production"]:
        """Return the form of the entries that the queue is for."""
        return "legacy" if self.queue == "migrate" else "production"

    @property
    def choices(self) -> dict[str, Any]:
        """Return what the payload of a batch says beside its range.

        `read_again` names the outcomes whose entries the next attempt at a batch reads again.
        """
        match self.queue:
            case "verify":
                return {"deep": self.deep, "repair": self.repair, "read_again": ["migrated", "kept"]}
            case "revert":
                return {"read_again": ["kept"]}
            case _:
                return {"on_conflict": self.on_conflict}
