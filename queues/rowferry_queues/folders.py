"""Rows that name folders: their objects are listed, as many as one attempt takes; how far it has come is noted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, cast

from msgspec.structs import replace
from psycopg.types.json import Jsonb

from rowferry.batch import Outcome
from rowferry.db.connection import call
from rowferry.errors import NotStarted, ObjectError, ObjectNotFound, ObjectRejected
from rowferry.http.event_loop import run_in_thread
from rowferry.keys import ObjectKeys, StandingObject, name_object
from rowferry.plan import Entries, SideName
from rowferry.s3.clocks import read_date
from rowferry.s3.listings.keys import PAGE_KEYS, ListedObject, Walk
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_listings
from rowferry_worker.batch.objects import End, MappedRow
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.objects.requests import ObjectRequests

MOST_OBJECTS = 10_000
"""Of one attempt, whose memory and time are bounded: what is behind them is for the next one."""

Folder = ObjectKeys | StandingObject


class Reached(NamedTuple):
    """How far earlier attempts have come in the folders of the batch's first row."""

    key: str
    """All is done up to this legacy key, and with it."""
    since: datetime | None
    """When the first of them began, by the legacy server's clock; None where it does not tell."""
    objects: int
    """Those that they have written."""
    size_bytes: int


class FolderRow(MappedRow, frozen=True, gc=False):
    """An entry, the folders that its row names, and those of their objects that this attempt works on."""

    folders: tuple[Folder, ...] = ()
    """In the order of their keys; none lies in another."""
    reached: Reached | None = None
    since: datetime | None = None
    """When the first listing of them was answered, by the legacy server's clock."""


@dataclass(slots=True)
class _Listed:
    """What was listed for a row."""

    rests: list[str] = field(default_factory=list[str])
    """What follows the prefix of [[entries]] in the keys."""
    is_whole: bool = True
    since: datetime | None = None
    empty: Folder | None = None
    """The first folder without any object that is to have one."""


async def take_page(s3: ObjectRequests, walk: Walk) -> tuple[list[ListedObject], datetime | None]:
    """Return the next objects of a listing, and what the server says the time is."""
    response = await s3.send(walk.next_request(min(PAGE_KEYS, MOST_OBJECTS)))
    page = await run_in_thread(partial(walk.take, response))
    return page.objects, read_date(response.headers)


def expand_folders(
    context: BatchContext, entries: Entries, rows: Iterable[MappedRow], sides: Sequence[SideName] = ("legacy",)
) -> list[FolderRow]:
    """Return rows with the objects of their folders, listed on these sides, in the order of their keys.

    The first row has those behind what earlier attempts have reached, as many as one attempt takes; another one that
    is not listed to its end has none, and neither is whole. A folder without any object is the fault of its row, unless
    it may be empty.
    """
    found = [_take_folders(context, row, is_first=not number) for number, row in enumerate(rows)]
    to_list = {str(number): row for number, row in enumerate(found) if row.fault is None}
    listing = _Listing(context.object_requests(), entries, sides)
    ended = run_listings(context, lambda number: listing.list_row(to_list[number], is_first=number == "0"), to_list)
    return [
        _fill(row, entries, ended[str(number)], is_first=not number) if row.fault is None else row
        for number, row in enumerate(found)
    ]


def _take_folders(context: BatchContext, row: MappedRow, *, is_first: bool) -> FolderRow:
    folders: list[Folder] = []
    for each in sorted(row.objects, key=lambda folder: (folder.production, not folder.is_required)):
        if not folders or not each.production.startswith(folders[-1].production):
            folders.append(each)
    reached = read_reached(context.batch.payload, row.entry.id) if is_first else None
    plan = context.migration.plan
    fault = row.fault
    if plan.is_one_bucket and any(_are_nested(each) for each in folders):
        words = "both sides are one bucket, where its copies would be objects of its own folder"
        fault = ObjectRejected("KeyCannotBeMapped", words)
    return FolderRow(row.entry, (), row.new_key, fault, folders=tuple(folders), reached=reached)


def _are_nested(folder: Folder) -> bool:
    one, other = folder.legacy or folder.production, folder.production
    return one.startswith(other) or other.startswith(one)


@dataclass(slots=True)
class _Listing:
    """The listings of the rows of an attempt. Event loop only."""

    s3: ObjectRequests
    entries: Entries
    sides: Sequence[SideName]
    used: int = 0
    """How many objects were listed for all rows; all of MOST_OBJECTS is kept free for the first one."""

    async def list_row(self, row: FolderRow, *, is_first: bool) -> CopyResult:
        """List the folders of a row one after the other, until there is no room left."""
        after = "" if row.reached is None else row.reached.key.removeprefix(self.entries.legacy_object_prefix)
        listed = _Listed()
        for folder in row.folders:
            begins = folder.production.removeprefix(self.entries.production_object_prefix)
            is_begun = after.startswith(begins)
            if after and begins < after and not is_begun:
                continue
            ends: list[str] = []
            found: set[str] = set()
            for side, key, prefix in self._list_sides(folder):
                walk = Walk(side, key, prefix + after if is_begun else "")
                rests, is_whole = await self._list_side(walk, listed, is_first=is_first)
                found.update(rest[len(prefix) :] for rest in rests)
                ends += [] if is_whole else [rests[-1][len(prefix) :] if rests else ""]
            listed.rests += sorted(rest for rest in found if not ends or rest <= min(ends))
            if not found and not ends and folder.is_required and not is_begun:
                listed.empty = listed.empty or folder
            if ends:
                listed.is_whole = False
                break
        return CopyResult(Outcome.KEPT, value=listed)

    def _list_sides(self, folder: Folder) -> Iterator[tuple[SideName, str, str]]:
        """Yield what the keys of a folder begin with on each side, and with it the prefix of [[entries]] there."""
        if "legacy" in self.sides and folder.legacy is not None:
            yield "legacy", folder.legacy, self.entries.legacy_object_prefix
        if "production" in self.sides:
            yield "production", folder.production, self.entries.production_object_prefix

    async def _list_side(self, walk: Walk, listed: _Listed, *, is_first: bool) -> tuple[list[str], bool]:
        """Return keys, and whether these are all."""
        keys: list[str] = []
        while not walk.is_over:
            if (len(listed.rests) + len(keys) if is_first else self.used) >= MOST_OBJECTS:
                return keys, False
            objects, now = await take_page(self.s3, walk)
            listed.since = listed.since or now
            self.used += len(objects)
            keys += [each.key for each in objects]
        return keys, True


def _fill(row: FolderRow, entries: Entries, ended: End, *, is_first: bool) -> FolderRow:
    if not isinstance(ended, CopyResult):
        if isinstance(ended, NotStarted):
            return replace(row, is_whole=False)
        return replace(row, fault=cast("ObjectError", ended))
    listed: _Listed = ended.value
    if listed.empty is not None:
        return replace(row, fault=describe_empty(listed.empty))
    if not listed.is_whole and not is_first:
        return replace(row, is_whole=False)
    try:
        objects = tuple(name_object(entries, rest) for rest in listed.rests)
    except ValueError as error:
        return replace(row, fault=ObjectRejected("KeyCannotBeMapped", str(error)))
    since = row.reached.since if row.reached is not None else listed.since
    return replace(row, objects=objects, is_whole=listed.is_whole, since=since)


def describe_empty(folder: Folder) -> ObjectNotFound:
    """Return the error of a folder that has no object."""
    where = folder.production if folder.legacy is None else folder.legacy
    words = f"the folder {where!r} has no object; write `may_be_empty = true` in the plan if that is no fault"
    return ObjectNotFound("EmptyFolder", words)


def note_first(
    context: BatchContext, rows: Sequence[FolderRow], by_key: Mapping[str, End], side: SideName = "legacy"
) -> tuple[Sequence[FolderRow], bool]:
    """Return the rows, and whether the next attempt goes on where this one has come to with the first of them.

    How far that is, is noted, and the others of the batch need not wait for that row. Where an attempt comes no further
    than the one before, the row is judged by what is in its way.
    """
    if not rows or rows[0].fault is not None:
        return rows, False
    first, ends = rows[0], [by_key[key] for key in rows[0].list_keys(side)]
    if first.is_whole and not any(isinstance(end, NotStarted) for end in ends):
        return rows, False
    done = next((number for number, end in enumerate(ends) if not _is_done(end)), len(ends))
    if done:
        _note_reached(context, first, [cast("CopyResult", end) for end in ends[:done]])
        return rows, True
    tried = tuple(each for each, end in zip(first.objects, ends, strict=True) if not isinstance(end, NotStarted))
    return [replace(first, objects=tried, is_whole=True), *rows[1:]] if tried else rows, False


def _is_done(end: End) -> bool:
    return isinstance(end, CopyResult) and end.outcome is not Outcome.CONFLICT


def _note_reached(context: BatchContext, row: FolderRow, done: Sequence[CopyResult]) -> None:
    before, since = read_reached(context.batch.payload, row.entry.id), row.since
    written = [end for end in done if end.outcome is Outcome.MIGRATED]
    objects, size_bytes = len(written), sum(end.size_bytes for end in written)
    if before is not None:
        since, objects, size_bytes = before.since, objects + before.objects, size_bytes + before.size_bytes
    reached = {
        "id": row.entry.id,
        "key": row.objects[len(done) - 1].legacy,
        "since": since and since.timestamp(),
        "objects": objects,
        "bytes": size_bytes,
    }
    call(context.connection, "note_folder", context.batch.id, Jsonb(reached))


def read_reached(payload: Mapping[str, Any], entry_id: str) -> Reached | None:
    """Return how far earlier attempts at a batch have come in the folders of an entry; None where that is no way."""
    noted = payload.get("folder")
    if noted is None or noted["id"] != entry_id:
        return None
    since = None if noted["since"] is None else datetime.fromtimestamp(float(noted["since"]), UTC)
    return Reached(noted["key"], since, noted["objects"], noted["bytes"])
