"""What a pass is asked for, and what it has added."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.errors import UsageError
from rowferry.formatting import count_batches, count_entries
from rowferry.keys import Form
from rowferry.plan import BucketPrefix, Entries, ObjectPrefix, Plan, QueueSettings
from rowferry.queue_spec import QueueChoices, QueueSpec
from rowferry.queues import find_queue, read_settings

Part = Entries | ObjectPrefix | BucketPrefix
"""What a batch can be of, beside items."""


@dataclass(frozen=True, slots=True)
class Within:
    """Limits a request to one table, a range of its ids, both ends included, or some objects; all None: no limit."""

    table: str | None = None
    """A table, `table.key`, or the label of [[objects]], as the plan names it."""
    first: str | None = None
    last: str | None = None
    keys: tuple[str, ...] | None = None
    """Legacy keys: only rows that name one of them are meant."""

    def choose_objects(self, plan: Plan) -> Sequence[ObjectPrefix]:
        """Return the [[objects]] that are meant."""
        return [objects for objects in plan.objects if self.table in {None, objects.label}]

    def choose(self, plan: Plan) -> Sequence[Entries]:
        """Return the [[entries]] that are meant. Raises UsageError where nothing is, or ids of several tables."""
        chosen = [entries for entries in plan.entries if self.table in {None, entries.table, entries.label}]
        objects = self.choose_objects(plan)
        if not chosen and not objects and not (self.table or "").startswith("s3://") and plan.parts:
            known = [*(entries.table for entries in plan.entries), *(objects.label for objects in plan.objects)]
            raise UsageError(f"The plan has no table {self.table}; it has {', '.join(dict.fromkeys(known))}.")
        if (self.first or self.last) and objects and (chosen or len(objects) > 1):
            raise UsageError(
                "--first and --last need --table, because ids belong to one table, or keys to one [[objects]]."
            )
        if (self.first or self.last) and len({(entries.table, entries.ids) for entries in chosen}) > 1:
            raise UsageError("--first and --last need --table, because ids belong to one table.")
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
class EnqueueRequest:
    """Which batches to make, and what their workers shall do."""

    queue: QueueSpec
    batch_size: int = DEFAULT_BATCH_SIZE
    limit: int | None = None
    """Entries at most, over all tables."""
    choices: QueueChoices | None = None
    """What the queue is asked for; None: its defaults."""
    within: Within = Within()
    is_first: bool = True
    """Whether it is the first pass of a run: only that lists [[objects]] and takes entries whose rows stay."""

    @property
    def is_whole(self) -> bool:
        """Whether all entries of the tables are meant."""
        return self.limit is None and self.within == Within()

    def choose(self, plan: Plan) -> list[Entries]:
        """Return the [[entries]] that are meant. Raises UsageError where nothing is.

        Where rows go back to their legacy form, that of rows which stay is no work.
        """
        chosen = self.choose_all(plan)
        return [each for each in chosen if each.rows == "move"] if self.queue.gives_form == "legacy" else chosen

    def choose_all(self, plan: Plan) -> list[Entries]:
        """Return the same, with rows that the queue has nothing to do with."""
        if "table" not in self.queue.sources:
            return []
        settings = self.queue.read_settings(plan)
        return [entries for entries in self.within.choose(plan) if settings.means(entries.label)]

    def choose_objects(self, plan: Plan) -> list[ObjectPrefix | BucketPrefix]:
        """Return the [[objects]] and the buckets that are meant: a pass lists them."""
        if "listing" not in self.queue.sources:
            return []
        settings = self.queue.read_settings(plan)
        listed = [objects for objects in self.within.choose_objects(plan) if settings.means(objects.label)]
        return [*listed, *(bucket for bucket in settings.buckets if self.within.table in {None, bucket.label})]

    def find_form(self, plan: Plan) -> Form:
        """Return the form of the entries that the queue works on."""
        return self.queue.find_form(self.queue.read_settings(plan))

    def find_condition(self, plan: Plan) -> str | None:
        """Return the SQL condition that rows must meet for the queue; None: all rows do."""
        return self.queue.where(self.queue.read_settings(plan))

    def makes_pass(self, part: Part) -> bool:
        """Return whether later passes take what has changed since this one."""
        return self.queue.makes_passes and stays(part)

    def replaces(self, part: Entries) -> bool:
        """Return whether different objects may be replaced at the production keys of entries."""
        return (self.choices or self.queue.choices()).replaces(stays=stays(part))

    def payload(self, part: Part | None = None) -> dict[str, Any]:
        """Return what the payload of batches says beside their source; `part` None: of entries whose rows move."""
        chosen = (self.choices or self.queue.choices()).payload(stays=part is not None and stays(part))
        # Entries that are read again although they are settled would be handed on again as well.
        tracks = self.queue.retries_unsettled or "read_again" in chosen
        return {"unsettled": None, **chosen} if tracks else chosen


def stays(part: Part) -> bool:
    """Return whether no row moves with these objects."""
    return not isinstance(part, Entries) or part.rows == "stay"


def describe_queues(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return what `rowferry.queue` holds of each queue of a plan, and of those that they lead to.

    `payload`: what a batch says, beside its source, that one of them gets from another. Raises UsageError as
    `read_settings`.
    """
    settings = read_settings(plan)
    names = dict.fromkeys([*settings, *(name for queue in settings.values() for name in queue.then)])
    return {name: _describe_queue(find_queue(name), settings.get(name) or QueueSettings()) for name in names}


def _describe_queue(spec: QueueSpec, settings: QueueSettings) -> dict[str, Any]:
    return {
        "priority": settings.priority,
        "weight": settings.weight,
        "max_claimed": settings.max_claimed,
        "next": settings.then,
        "payload": EnqueueRequest(spec).payload(),
    }


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


def split_id(text: str, entries: Entries, option: str) -> Sequence[str]:
    """Return the values of an id's columns, or of the first of them.

    Of several columns, `text` is `7,12` or, as rowferry shows ids, `["7", "12"]`. Raises UsageError where it is not.
    """
    columns = len(entries.ids)
    if columns == 1:
        return (text,)
    values = read_array(text) if text.lstrip().startswith("[") else [part.strip() for part in text.split(",")]
    if values is None or not 1 <= len(values) <= columns:
        names = ",".join(entries.ids)
        raise UsageError(
            f"{option} is {text!r}, and an id of {entries.table} is {names}: give their values with commas between "
            'them, or as a JSON array of texts such as ["7", "12"].'
        )
    return values


def read_array(text: str) -> list[str] | None:
    """Return the texts and numbers of a JSON array as texts; None where it is no such array."""
    try:
        found = msgspec.json.decode(text, type=list[str | int])
    except msgspec.DecodeError:
        return None
    return [str(value) for value in found]
