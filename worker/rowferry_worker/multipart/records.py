"""Records of unfinished multipart uploads in PostgreSQL, so that the next attempt goes on at the missing part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb

from rowferry_worker.objects.own_copies import KnownCopies


class Recorded(NamedTuple):
    """What is recorded of an upload, so that another worker can go on with it."""

    upload_id: str
    legacy: str
    """Endpoint and bucket of the legacy object."""
    legacy_key: str
    source_etag: str
    """The legacy object's ETag, and a digest of what describes it: an upload of another version is not continued."""
    size_bytes: int
    part_bytes: int

    def is_of(self, plan: "Recorded") -> bool:
        """Return whether the parts of this upload are parts of the object that `plan` describes."""
        mine, its = (one._replace(upload_id="", part_bytes=0) for one in (self, plan))
        return mine == its and self.part_bytes > 0


@dataclass(frozen=True, slots=True)
class UploadRecords(KnownCopies):
    """The records that one attempt at a batch keeps. An attempt that cannot record goes on without."""

    batch_id: int = 0
    attempt_id: int = 0

    async def take(self, key: str, legacy_key: str) -> "UploadRecord | None":
        """Take the upload to a production key, of a legacy object; None while an attempt at another batch holds it.

        None as well while another batch has lately worked on an upload of another object to that key.
        """
        where = self.batch_id, self.attempt_id, self.production, key
        rows = await self._ask("take_upload", *where, self.legacy, legacy_key)
        if rows is None:
            return UploadRecord(UploadRecords(), key)
        row = rows[0]
        if not row["is_held"]:
            return None
        recorded = None if row["upload_id"] is None else Recorded(*(row[name] for name in Recorded._fields))
        return UploadRecord(self, key, recorded, {int(number): etag for number, etag in row["parts"].items()})

    async def tell(self, function: str, key: str, *arguments: Any) -> bool | None:
        """Return what a function says of the upload to a key that this attempt holds; None where it cannot be had."""
        rows = await self._ask(function, self.attempt_id, self.production, key, *arguments)
        return None if rows is None else bool(rows[0][function])

    async def add_parts(self, key: str, upload_id: str, etags: Mapping[int, str]) -> bool | None:
        """Record parts that are sent; return whether they are still this attempt's to send, None where that failed."""
        return await self.tell("record_parts", key, upload_id, Jsonb({str(one): etag for one, etag in etags.items()}))


class UploadRecord:
    """The record of one upload that this attempt holds; records without a `call` write nothing."""

    def __init__(
        self,
        records: UploadRecords,
        key: str,
        recorded: Recorded | None = None,
        parts: Mapping[int, str] | None = None,
    ) -> None:
        """`recorded`: what an earlier attempt has left; `parts`: the ETags of the parts that were confirmed to it."""
        self._records = records
        self._key = key
        self.recorded = recorded
        self.parts: Mapping[int, str] = parts or {}
        self.stands = recorded is not None
        """Whether another attempt would find the upload."""

    async def save(self, recorded: Recorded) -> None:
        """Record the upload; `stands` tells whether that worked."""
        self.stands = await self._records.tell("record_upload", self._key, *recorded) is True

    async def add_parts(self, upload_id: str, etags: Mapping[int, str]) -> bool | None:
        """Record parts of the upload; return whether it is still this attempt's, None where that failed."""
        return self.stands and await self._records.add_parts(self._key, upload_id, etags)

    async def end(self) -> bool:
        """Forget the upload; return whether it is this attempt's to abort."""
        had, self.stands = self.stands, False
        return await self._records.tell("end_upload", self._key) is True or not had
