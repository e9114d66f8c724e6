"""Faults to seed in a finished migration, which the auditor and the final checks must find."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from torture.final_checks import (
    Expected,
    check_attempts,
    check_batches,
    check_legacy,
    check_production,
    check_rows,
    check_uploads,
)
from torture.world import World, key_of, production_key_of

ENTRIES = 12
"""In the world that is to be spoilt."""


class SeededFault(NamedTuple):
    """Who must find it, what spoils something, in SQL or otherwise, and how the violation begins."""

    part: Callable[[World, Expected], Iterator[str]]
    deed: str | Callable[[World], object]
    violation: str

    def seed(self, world: World) -> None:
        if isinstance(self.deed, str):
            world.migration.execute(self.deed)
        else:
            self.deed(world)


def put_production(world: World, key: str, body: bytes = b"") -> None:
    world.migration.production.put(key, body, ContentType="text/plain", Metadata={"number": "10"})


def spoil_properties(world: World) -> None:
    body = world.migration.production.read(production_key_of(10))
    assert body is not None
    put_production(world, production_key_of(10), body)


def rewrite_legacy_object(world: World) -> None:
    """The bytes and the properties stay as they were: the time of the write tells."""
    found = world.migration.legacy.head(key_of(8))
    body = world.migration.legacy.read(key_of(8))
    assert body is not None
    world.migration.legacy.put(key_of(8), body, ContentType=found["ContentType"], Metadata={"number": "0"})


def open_upload(world: World) -> None:
    legacy = world.migration.legacy
    legacy.client.create_multipart_upload(Bucket=legacy.bucket, Key="image/half.png")


COUNT_TWICE = "update rowferry.batch_queue set migrated = migrated + 1, entry_count = entry_count + 1 where id = 2"
SWAP = "update public.avatars set path = (select path from public.avatars where id = 2) where id = 3"
SEEDED_FAULTS: Mapping[str, SeededFault] = {
    "a row that names nothing": SeededFault(
        check_rows, "update public.avatars set path = 'avatar/nowhere.png' where id = 1", "row 1 names no object: "
    ),
    "a row with another's object": SeededFault(check_rows, SWAP, "row 3 names an object of "),
    "a lost row": SeededFault(check_rows, "delete from public.avatars where id = 4", "row 4 is lost"),
    "a new row": SeededFault(check_rows, "insert into public.avatars values (99, null)", "row 99 appeared"),
    "a row left behind": SeededFault(
        check_rows, f"update public.avatars set path = '{key_of(5)}' where id = 5", "row 5 is still legacy"
    ),
    "a spoilt object": SeededFault(
        check_rows, lambda world: put_production(world, production_key_of(6)), "row 6 names an object of 0 wrong bytes"
    ),
    "a lost object": SeededFault(
        check_rows, lambda world: world.migration.production.delete(production_key_of(7)), "row 7 names no object"
    ),
    "a stray object": SeededFault(
        check_production,
        lambda world: put_production(world, "avatar/stray.png"),
        "production object 'avatar/stray.png' belongs to no row",
    ),
    "other properties": SeededFault(
        check_production, spoil_properties, f"production object {production_key_of(10)!r} has other properties"
    ),
    "a rewritten legacy object": SeededFault(
        check_legacy, rewrite_legacy_object, f"legacy object {key_of(8)!r} was written"
    ),
    "a deleted legacy object": SeededFault(
        check_legacy, lambda world: world.migration.legacy.delete(key_of(9)), f"legacy object {key_of(9)!r} is gone"
    ),
    "a new legacy object": SeededFault(
        check_legacy,
        lambda world: world.migration.legacy.put("image/new.png", b""),
        "legacy object 'image/new.png' app",
    ),
    "an open upload": SeededFault(
        check_uploads, open_upload, "a multipart upload of the legacy object 'image/half.png' is open"
    ),
    "a batch in error": SeededFault(
        check_batches,
        "update rowferry.batch_queue set status = 'ERROR', error = 'planted' where id = 1",
        "batch 1 is ERROR: planted",
    ),
    "an entry counted twice": SeededFault(check_batches, COUNT_TWICE, f"{ENTRIES} entries have {ENTRIES + 1} outcomes"),
    "an open attempt": SeededFault(
        check_attempts, "update rowferry.batch_attempt set verdict = null where id = 1", "attempt 1 at batch "
    ),
    "a worker that did not sign off": SeededFault(
        check_attempts, "update rowferry.worker set stopped_at = null", "worker "
    ),
}
