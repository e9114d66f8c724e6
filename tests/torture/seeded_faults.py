"""Faults to seed in a finished migration, which the auditor and the final checks must find."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from torture.final_checks import (
    Expected,
    check_attempts,
    check_batches,
    check_legacy,
    check_production,
    check_rows,
    check_uploads,
)
from torture.world import World, key_of

ENTRIES = 12
"""In the world that is to be spoilt."""

SeededFault = Callable[[World], str]
"""Spoils something, and returns how the violation begins that must be found then."""
Part = Callable[[World, Expected], Iterator[str]]


def spoil_row(world: World) -> str:
    world.query("update public.avatars set path = 'avatar/nowhere.png' where id = 1 returning id")
    return "row 1 names no object: 'avatar/nowhere.png'"


def swap_rows(world: World) -> str:
    other = world.ask("select path from public.avatars where id = 2")
    world.query("update public.avatars set path = %s where id = 3 returning id", other)
    return "row 3 names an object of "


def lose_row(world: World) -> str:
    world.query("delete from public.avatars where id = 4 returning id")
    return "row 4 is lost"


def add_row(world: World) -> str:
    world.query("insert into public.avatars values (99, null) returning id")
    return "row 99 appeared"


def leave_row_behind(world: World) -> str:
    world.query("update public.avatars set path = %s where id = 5 returning id", key_of(5))
    return "row 5 is still legacy"


def spoil_object(world: World) -> str:
    world.migration.production.put(production_key_of(6), b"")
    return "row 6 names an object of 0 wrong bytes"


def lose_object(world: World) -> str:
    world.migration.production.delete(production_key_of(7))
    return "row 7 names no object"


def add_object(world: World) -> str:
    world.migration.production.put("avatar/stray.png", b"")
    return "production object 'avatar/stray.png' belongs to no row"


def spoil_properties(world: World) -> str:
    body = world.migration.production.read(production_key_of(10))
    assert body is not None
    world.migration.production.put(production_key_of(10), body, ContentType="text/plain", Metadata={"number": "10"})
    return f"production object {production_key_of(10)!r} has other properties"


def rewrite_legacy_object(world: World) -> str:
    """The bytes and the properties stay as they were: the time of the write tells."""
    found = world.migration.legacy.head(key_of(8))
    body = world.migration.legacy.read(key_of(8))
    assert body is not None
    world.migration.legacy.put(key_of(8), body, ContentType=found["ContentType"], Metadata={"number": "0"})
    return f"legacy object {key_of(8)!r} was written"


def delete_legacy_object(world: World) -> str:
    world.migration.legacy.delete(key_of(9))
    return f"legacy object {key_of(9)!r} is gone"


def add_legacy_object(world: World) -> str:
    world.migration.legacy.put("image/new.png", b"")
    return "legacy object 'image/new.png' appeared"


def open_upload(world: World) -> str:
    legacy = world.migration.legacy
    legacy.client.create_multipart_upload(Bucket=legacy.bucket, Key="image/half.png")
    return "a multipart upload of the legacy object 'image/half.png' is open"


def reopen_batch(world: World) -> str:
    world.query("update rowferry.batch_queue set status = 'ERROR', error = 'planted' where id = 1 returning id")
    return "batch 1 is ERROR: planted"


def count_twice(world: World) -> str:
    world.query(
        "update rowferry.batch_queue set migrated = migrated + 1, entry_count = entry_count + 1 "
        "where id = 2 returning id"
    )
    return f"{ENTRIES} entries have {ENTRIES + 1} outcomes"


def leave_attempt_open(world: World) -> str:
    world.query("update rowferry.batch_attempt set verdict = null where id = 1 returning id")
    return "attempt 1 at batch "


def forget_deregistration(world: World) -> str:
    worker = world.ask("update rowferry.worker set stopped_at = null returning id")
    return f"worker {worker} has neither died nor signed off"


SEEDED_FAULTS: Mapping[Part, Sequence[SeededFault]] = {
    check_rows: [spoil_row, swap_rows, lose_row, add_row, leave_row_behind, spoil_object, lose_object],
    check_production: [add_object, spoil_properties],
    check_legacy: [rewrite_legacy_object, delete_legacy_object, add_legacy_object],
    check_uploads: [open_upload],
    check_batches: [reopen_batch, count_twice],
    check_attempts: [leave_attempt_open, forget_deregistration],
}


def production_key_of(number: int) -> str:
    return key_of(number).replace("image/", "avatar/", 1)
