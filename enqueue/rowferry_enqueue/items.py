"""Puts items in a queue: entries that no table and no bucket names, but their enqueuer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from psycopg.errors import LockNotAvailable
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.db.connection import Connection, call, fetch_one
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan import Plan
from rowferry.plan_file import NUL
from rowferry.queue_spec import QueueChoices, QueueSpec
from rowferry.queues import find_queue, list_following, read_settings
from rowferry_enqueue.enqueue import register, translated_refusals, wait_for_turn
from rowferry_enqueue.refusals import refuse_foreign_code
from rowferry_enqueue.request import EnqueueRequest

Item = Mapping[str, Any]
"""An object with an `id`, which is a text, and what its queue needs."""

MAX_ITEMS = 10_000
"""Items in memory, and of one transaction, at most."""
MAX_BYTES = 16 * 1024**2
"""Of their JSON; and of one item."""


BUSY = timedelta(seconds=60)
"""How long a worker is waited for that has claimed an item whose content is replaced."""


@dataclass(slots=True)
class ItemsEnqueued:
    """What was put in the queue so far."""

    batches: int = 0
    items: int = 0
    skipped: int = 0
    """Items that waited already, with the same content."""
    replaced: int = 0
    """Items that waited already, whose content is now this one."""
    parked: int = 0
    """Of skipped and replaced ones, those in batches in ERROR."""
    doubles: int = 0
    """Items that gave way to a later one of the same id in one file."""


@dataclass(slots=True)
class _Call:
    """One call of `enqueue_items`."""

    migration_id: int
    queue: str
    seen: set[int] = field(default_factory=set[int])
    """Hashes of all ids so far; some 65 bytes each. An id whose hash is there may have been enqueued by this call."""
    times: list[datetime] = field(default_factory=list[datetime])
    """When this call has made batches: their `created_at`."""


def enqueue_items(
    connection: Connection,
    plan: Plan,
    queue: QueueSpec,
    items: Iterable[Item],
    *,
    batch_size: int = DEFAULT_BATCH_SIZE,
    choices: QueueChoices | None = None,
    enqueued: ItemsEnqueued | None = None,
) -> ItemsEnqueued:
    """Put items in a queue, and return how many.

    They are committed in groups of at most 10,000 items or 16 MiB, so memory is bounded and workers begin meanwhile;
    `enqueued` is kept up to date, so that it tells what was added before an error. An item that waits already gets the
    new content and is not added: the same items may be enqueued again after an error. Of several with one id the last
    counts, wherever they are. Items that are done are added again: a queue stands that. Raises UsageError where the
    queue, or one that follows it, takes no items, an item is wrong, or a worker keeps one for too long.
    """
    refuse_items(plan, queue)
    done = ItemsEnqueued() if enqueued is None else enqueued
    payload = Jsonb(EnqueueRequest(queue, choices=choices).payload())
    with translated_refusals():
        migration_id, _ = register(connection, plan)
        this = _Call(migration_id, queue.name)
        for group in _group(items):
            by_id = {item.get("id", ""): item for item in group}  # SQL refuses one without
            with connection.transaction():
                wait_for_turn(connection, plan)
                waiting = _replace_waiting(connection, this, by_id)
                new = [item for number, item in by_id.items() if number not in waiting]
                done_now = call(connection, "enqueue_items", plan.name, queue.name, Jsonb(new), batch_size, payload)
                this.times.append(fetch_one(connection, statement("read_own_time"))["created_at"])
            this.seen.update(map(hash, by_id))
            done.batches += done_now[0]["batches"]
            done.items += done_now[0]["entries"]
            done.doubles += len(group) - len(by_id)
            _count_waiting(done, waiting.values())
    return done


def refuse_items(plan: Plan, queue: QueueSpec) -> None:
    """Raise UsageError where a queue, or one that gets what it has settled, takes no items, or names foreign code."""
    for name in list_following(queue.name, read_settings(plan)):
        if "items" not in find_queue(name).sources:
            which = "" if name == queue.name else f", which gets what {queue.name} has settled,"
            raise UsageError(f"The queue {name}{which} takes no items: see `rowferry queues` for others.")
    refuse_foreign_code(plan, queue)


def read_items(lines: Iterable[bytes], source: str) -> Iterator[dict[str, Any]]:
    """Yield the items of JSON lines; empty lines are skipped, and a number as `id` is taken as text.

    Raises UsageError, which names the line of `source`, for one that is no item.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"Line {number:,} of {source}"
        if len(line) > MAX_BYTES:
            raise UsageError(f"{where} is longer than {MAX_BYTES:,} bytes: name large things by their keys.")
        try:
            item = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f'{where} is no JSON object, such as {{"id": "17"}} ({error}): correct it.') from error
        if type(item.get("id")) is int:
            item["id"] = str(item["id"])
        if not isinstance(item.get("id"), str) or not item["id"]:
            raise UsageError(f"{where} has no `id`, a text that no other line has: add it.")
        if NUL.search(line):
            raise UsageError(f"{where} holds a NUL, which PostgreSQL has in no text: write it without.")
        yield item


def _group(items: Iterable[Item]) -> Iterator[list[Item]]:
    group: list[Item] = []
    size_bytes = 0
    for item in items:
        group.append(item)
        size_bytes += len(msgspec.json.encode(item))
        if len(group) >= MAX_ITEMS or size_bytes >= MAX_BYTES:
            yield group
            group, size_bytes = [], 0
    if group:
        yield group


def _replace_waiting(connection: Connection, this: _Call, by_id: Mapping[str, Item]) -> dict[str, DictRow]:
    """Give waiting items their new content, and return what was found of each, by id."""
    again = [number for number in by_id if hash(number) in this.seen]
    items = Jsonb(list(by_id.values()))
    try:
        rows = call(connection, "replace_items", this.migration_id, this.queue, items, this.times, again, BUSY)
    except LockNotAvailable as error:
        words = f"A worker has been busy for {BUSY.total_seconds():g} s with items whose content is to be replaced"
        raise UsageError(f"{words}: enqueue them again when `rowferry queues` shows fewer claimed batches.") from error
    return {row["id"]: row for row in rows}


def _count_waiting(done: ItemsEnqueued, found: Iterable[DictRow]) -> None:
    for row in found:
        done.skipped += row["is_same"]
        done.replaced += not row["is_same"]
        done.parked += row["is_in_error"]
