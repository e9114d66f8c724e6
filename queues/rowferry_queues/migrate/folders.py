"""The end of step 3 of 5 for rows that name folders: list these again, and copy what was added or rewritten meanwhile.

A row guards no object that is added to its folder, so a folder is listed once more after each copy, and its row moves
when nothing is new in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ServerFault
from rowferry.keys import ObjectKeys, map_object
from rowferry.plan import Entries
from rowferry.s3.listings.keys import ListedObject, Walk
from rowferry_queues.folders import MOST_OBJECTS, FolderRow, Reached, describe_empty, take_page
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies, run_listings
from rowferry_worker.batch.row_update import RowChange
from rowferry_worker.batch.second_look import look_at_sources
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object, log_copy
from rowferry_worker.objects.compare import DIGEST
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.scheduling.copy_run import ObjectResult

ROUNDS = 4
"""How often an attempt lists folders again that objects are added to again and again."""
MARGIN = timedelta(minutes=1)
"""By how much the clocks of one server's machines may differ."""

ChooseOptions = Callable[[bool], CopyOptions]
"""How objects are copied; true: those that an earlier attempt has copied, which are its own where they are older."""


@dataclass(slots=True)
class _Look:
    """What a listing of a row's folders has shown."""

    objects: list[ObjectKeys] = field(default_factory=list[ObjectKeys])
    """Those that this attempt has to do with."""
    doubtful: dict[str, str] = field(default_factory=dict[str, str])
    """The ETags, by their legacy keys, of objects that are not known to be in production as they are now."""
    fault: ObjectError | None = None


def settle_folders(
    context: BatchContext,
    entries: Entries,
    rows: Sequence[FolderRow],
    by_key: Mapping[str, ObjectResult],
    choose_options: ChooseOptions,
) -> tuple[list[FolderRow], dict[str, ObjectResult]]:
    """Return the rows with the objects that their folders have now, and how the copies of these have ended.

    What is in a folder still and cannot be settled ends with a ServerFault: a later attempt goes on.
    """
    settling = _Settling(context, entries, choose_options, dict(by_key))
    found = [*rows]
    for number in range(ROUNDS):
        found = settling.look(found)
        if not settling.doubtful:
            break
        if number == ROUNDS - 1:
            words = "its folder changes faster than it can be copied; it is copied again later"
            settling.by_key |= dict.fromkeys(settling.doubtful, ServerFault("FolderChanges", words))
        else:
            settling.copy()
    return found, settling.by_key


def count_earlier(move: RowChange, row: FolderRow) -> RowChange:
    """Return the move of a row with what earlier attempts have written of its folders."""
    if row.reached is None or not row.reached.objects:
        return move
    return replace(move, outcome=Outcome.MIGRATED, size_bytes=move.size_bytes + row.reached.size_bytes)


def is_listed_as_copied(known: CopyResult, etag: str) -> bool:
    """Return whether an object is listed as it was copied: by its own ETag, or by that of its copy, a digest."""
    is_same = etag == known.etag and DIGEST.fullmatch(etag) is not None
    return bool(etag) and (is_same or etag == known.source_etag)


class _Settling:
    """The listings and copies of an attempt's folders."""

    def __init__(
        self,
        context: BatchContext,
        entries: Entries,
        choose_options: ChooseOptions,
        by_key: dict[str, ObjectResult],
    ) -> None:
        self._context, self._entries, self._choose_options = context, entries, choose_options
        self._is_immutable = context.migration.plan.legacy.immutable
        self.by_key = by_key
        """How the copies have ended, by their legacy keys."""
        self.doubtful: dict[str, str] = {}
        """As `_Look.doubtful`, of all rows."""
        self._production: dict[str, str] = {}
        self._earlier: set[str] = set()
        """Keys that an earlier attempt has copied."""
        self._seen: dict[str, str] = {}
        """The ETags with which legacy objects were listed before they were found to be what was copied."""

    def look(self, rows: Sequence[FolderRow]) -> list[FolderRow]:
        """List the folders of rows; return the rows with what is in them."""
        s3 = self._context.object_requests()
        to_look = {str(number): row for number, row in enumerate(rows) if row.fault is None}
        ended = run_listings(self._context, lambda number: self._look_at_row(s3, to_look[number]), to_look)
        self.doubtful.clear()
        return [self._take(row, ended[str(number)]) if row.fault is None else row for number, row in enumerate(rows)]

    def _take(self, row: FolderRow, ended: ObjectResult) -> FolderRow:
        if not isinstance(ended, CopyResult):
            return replace(row, fault=ended)
        look: _Look = ended.value
        if look.fault is not None:
            return replace(row, fault=look.fault)
        self.doubtful |= look.doubtful
        self._production |= {keys.legacy: keys.production for keys in look.objects}
        if row.reached is not None:
            self._earlier |= {key for key in look.doubtful if key <= row.reached.key and key not in self.by_key}
        return replace(row, objects=tuple(look.objects))

    async def _look_at_row(self, s3: ObjectRequests, row: FolderRow) -> CopyResult:
        look = _Look()
        for folder in row.folders:
            assert folder.legacy is not None
            walk, is_empty = Walk("legacy", folder.legacy), True
            copies = _Copies(s3, folder.production, row.reached, is_immutable=self._is_immutable)
            while not walk.is_over and look.fault is None:
                objects, _ = await take_page(s3, walk)
                is_empty = is_empty and not objects
                for listed in objects:
                    rest = listed.key[len(self._entries.legacy_object_prefix) :]
                    if not await copies.has(listed, self._entries.production_object_prefix + rest):
                        self._judge(look, listed)
                if len(look.doubtful) > MOST_OBJECTS:
                    words = f"more than {MOST_OBJECTS:,} objects of its folder are new; they are copied later"
                    look.fault = ServerFault("FolderChanges", words)
            if is_empty and folder.is_required:
                look.fault = look.fault or describe_empty(folder)
        return CopyResult(Outcome.KEPT, value=look)

    def _judge(self, look: _Look, listed: ListedObject) -> None:
        """Add an object of a folder to the row's; it is doubtful unless it was copied as it is now, or has failed."""
        look.objects.append(map_object(listed.key, self._entries))
        known = self.by_key.get(listed.key)
        if isinstance(known, ObjectError):
            return
        if known is None or not (not known.etag or self._is_immutable or self._is_current(known, listed)):
            look.doubtful[listed.key] = listed.etag

    def _is_current(self, known: CopyResult, listed: ListedObject) -> bool:
        seen = self._seen.get(listed.key)
        return is_listed_as_copied(known, listed.etag) or bool(seen and seen == listed.etag)

    def copy(self) -> None:
        """Copy what is new, and look at what may have been rewritten."""
        known = {key: found for key in self.doubtful if isinstance(found := self.by_key.get(key), CopyResult)}
        pairs = {key: (key, self._production[key]) for key in self.doubtful}
        looked = look_at_sources(self._context, self._choose_options(False), pairs, known, stays=False, each=True)
        s3 = self._context.object_requests()
        options = {is_earlier: self._choose_options(is_earlier) for is_earlier in (False, True)}
        new = run_copies(
            self._context,
            lambda key: log_copy(copy_object(s3, options[key in self._earlier], *pairs[key]), *pairs[key]),
            [key for key in self.doubtful if key not in known],
            is_look=True,
        )
        for key, etag in self.doubtful.items():
            ended = looked.get(key) or new[key]
            is_untold = key not in known and isinstance(ended, CopyResult) and not ended.source_etag
            self._seen.pop(key, None)
            if is_untold or ended is known.get(key):
                self._seen[key] = etag
        self.by_key |= looked | new


class _Copies:
    """The copies of a folder that earlier attempts have made, listed side by side with it; event loop only."""

    def __init__(self, s3: ObjectRequests, prefix: str, reached: Reached | None, *, is_immutable: bool) -> None:
        self._s3, self._reached, self._is_immutable = s3, reached, is_immutable
        self._walk = Walk("production", prefix)
        self._page: Iterator[ListedObject] = iter(())
        self._last: ListedObject | None = None

    async def has(self, listed: ListedObject, production_key: str) -> bool:
        """Return whether an earlier attempt has copied an object, which is listed as it was then; keys must rise."""
        reached = self._reached
        if reached is None or listed.key > reached.key:
            return False
        if not (self._is_immutable or _is_older(listed, reached.since)):
            return False
        while self._last is None or self._last.key < production_key:
            self._last = next(self._page, None)
            if self._last is None:
                if self._walk.is_over:
                    return False
                objects, _ = await take_page(self._s3, self._walk)
                self._page = iter(objects)
        return (self._last.key, self._last.size) == (production_key, listed.size)


def _is_older(listed: ListedObject, since: datetime | None) -> bool:
    """Return whether an object was surely written before a moment.

    What came by parts may be listed with the time at which its upload began. Source: Amazon S3 User Guide, "Working
    with object metadata", Last-Modified.
    """
    if since is None or "-" in listed.etag:
        return False
    try:
        modified = datetime.fromisoformat(listed.modified)
    except ValueError:
        return False
    return modified.tzinfo is not None and modified + MARGIN < since
