"""Production objects that are our own: what PostgreSQL remembers of copies, and what this process has left damaged."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

import psycopg

from rowferry.errors import NotRecorded, ObjectDamaged, RowferryError
from rowferry.http.event_loop import run_in_thread
from rowferry.plan import Side
from rowferry.s3.responses import Response

_log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_KEYS = 1000
"""Of so many damaged objects a process remembers the ETags at most; the oldest is forgotten first."""


Call = Callable[..., list[dict[str, Any]]]
"""Calls a function of the schema in a transaction of its own, and returns its rows: `Ledger.call`. Blocks."""


class KnownCopy(NamedTuple):
    """What is remembered of a production object that was copied."""

    legacy: str
    """Endpoint and bucket of the legacy object."""
    legacy_key: str
    source_etag: str
    """The legacy object's ETag, then."""
    size_bytes: int
    part_bytes: int
    etag: str
    """The production object's, as it was left."""
    noted_for: timedelta = timedelta(0)
    """How long ago that was noted."""
    is_pending: bool = False
    """Whether another write was begun since of which nobody knows how it ended."""
    digests: bytes | None = None
    """The MD5s of its parts, one after the other; None where they are not known."""


@dataclass(frozen=True, slots=True)
class KnownCopies:
    """The copies from one bucket to another that PostgreSQL remembers; without `call`, it remembers none."""

    call: Call | None = None
    legacy: str = ""
    """Endpoint and bucket of that side."""
    production: str = ""

    async def find_copy(self, key: str) -> KnownCopy | None:
        """Return what is remembered of a production object, None where that is nothing, or cannot be had now."""
        rows = await self._ask("find_copy", self.production, key)
        return KnownCopy(*(rows[0][name] for name in KnownCopy._fields)) if rows else None

    async def find_copy_of(self, legacy_key: str, key: str) -> KnownCopy | None:
        """Return what `find_copy` does, where the copy is of this legacy object."""
        known = await self.find_copy(key)
        return known if known and (known.legacy, known.legacy_key) == (self.legacy, legacy_key) else None

    async def is_known_copy(self, legacy_key: str, legacy_etag: str, key: str, etag: str) -> bool:
        """Return whether the production object is remembered as a copy of just this legacy object, by both ETags."""
        known = await self.find_copy_of(legacy_key, key)
        return known is not None and (known.source_etag, known.etag) == (legacy_etag, etag)

    async def is_own_copy(self, key: str, etag: str) -> bool:
        """Return whether a production object is remembered as a copy of ours, of whatever the legacy object was."""
        known = await self.find_copy(key)
        return known is not None and known.etag == etag

    async def note_write(self, key: str, legacy_key: str, *, is_pending: bool = True) -> None:
        """Remember that an object is about to be written, lest what is found there later is taken for another's.

        Without `is_pending`: nothing was written. Raises NotRecorded where that fails.
        """
        if self.call is not None:
            demand_recorded(await self._ask("note_write", self.production, key, self.legacy, legacy_key, is_pending))

    async def note_copy(self, key: str, etag: str, legacy_key: str, source_etag: str) -> None:
        """Remember an object that was copied in one piece as ours, lest it is taken for the application's work later.

        One that cannot be recorded is judged by its time.
        """
        if etag:
            await self._ask("note_copy", self.production, key, self.legacy, legacy_key, source_etag, etag)

    async def _ask(self, function: str, *arguments: Any) -> list[dict[str, Any]] | None:
        """Return the rows of a function; None where they cannot be had. The loop goes on meanwhile."""
        if self.call is None:
            return None
        try:
            return await run_in_thread(partial(self.call, function, *arguments))
        except (RowferryError, psycopg.Error, UnicodeError) as error:
            _log.warning("what is written cannot be recorded", extra={"function": function, "error": str(error)})
            return None


def demand_recorded(told: T | None) -> T:
    """Return what PostgreSQL told of what it has recorded. Raises NotRecorded where it told nothing."""
    if told is None:
        raise NotRecorded("NotRecorded", "PostgreSQL did not record what is written; the next attempt goes on")
    return told


def name_bucket(side: Side) -> str:
    """Return what tells a side's bucket from those of other servers."""
    server = side.endpoint_url or f"s3.{side.region_or_default}"
    return f"{server.rstrip('/')}/{side.bucket}"


class DamagedWrite(ObjectDamaged):
    """The server says itself that it has written something else than was sent."""

    etag = ""
    """The ETag that it tells of that, unquoted; empty where what stands there may be another writer's."""

    @classmethod
    def named(cls, code: str, message: str, etag: str) -> "DamagedWrite":
        """Return the error of the object that has this ETag."""
        error = cls(code, message)
        error.etag = etag
        return error


class OwnDamage:
    """By production key, the ETag of what a write of this process has left there; event loop only.

    A worker that dies forgets it: then the object is a different one, for a person to look at.
    """

    def __init__(self) -> None:
        """Know of none."""
        self._etags: dict[str, str] = {}

    @property
    def is_known(self) -> bool:
        """Return whether there is any."""
        return bool(self._etags)

    async def note(self, key: str, write: Awaitable[T]) -> T:
        """Return what a write to this key returns. What it leaves damaged is remembered; a success leaves nothing."""
        try:
            written = await write
        except DamagedWrite as error:
            if error.etag:
                self.remember(key, error.etag)
            raise
        if self._etags:
            self._etags.pop(key, None)
        return written

    def remember(self, key: str, etag: str) -> None:
        """Remember that what was written to a key, with this ETag, is damaged, or may be."""
        self._etags[key] = etag
        if len(self._etags) > MOST_KEYS:
            del self._etags[next(iter(self._etags))]

    def has_left(self, key: str, existing: Response) -> bool:
        """Return whether the object that stands at a production key is what a write of ours has left there."""
        return existing.etag is not None and self._etags.get(key) == existing.etag
