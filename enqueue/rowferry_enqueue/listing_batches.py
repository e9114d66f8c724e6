"""Puts a batch in the queue for each [[objects]] of a plan: a listing, which workers cut into ranges."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection, call, fetch_one
from rowferry.db.statements import statement
from rowferry.plan import BucketPrefix, ObjectPrefix, Plan
from rowferry_enqueue.request import Enqueued, EnqueueRequest


@dataclass(frozen=True, slots=True)
class Listing:
    """The listing of one [[objects]] that a pass adds."""

    objects: ObjectPrefix | BucketPrefix
    payload: dict[str, Any] | None
    """None: an earlier pass is unfinished, so that none is added."""


def find_listings(
    connection: Connection, plan: Plan, request: EnqueueRequest, migration_id: int | None
) -> list[Listing]:
    """Return the listings of a new pass; call it before batches in ERROR are renewed.

    An earlier pass is unfinished while one of its batches is INIT. What batches in ERROR cover is left out when the
    listing is cut: the pass takes those batches up again. `migration_id` None: nothing was ever enqueued.
    """
    if not request.is_first:
        return []
    found: list[Listing] = []
    for objects in request.choose_objects(plan):
        waiting = _find_waiting(connection, objects.label, request.queue.name, migration_id)
        payload = {
            "entries": objects.label,
            "objects": "listing",
            "first": max(objects.prefix, request.within.first or ""),
            "last": request.within.last,
            "size": request.batch_size,
            **request.payload(objects),
            **({"side": objects.side, "prefix": objects.prefix} if isinstance(objects, BucketPrefix) else {}),
            **({"beside_waiting": True} if waiting["has_errors"] else {}),
            **({"again": True} if waiting["was_listed"] else {}),
        }
        found.append(Listing(objects, None if waiting["is_unfinished"] else payload))
    return found


def _find_waiting(connection: Connection, label: str, queue: str, migration_id: int | None) -> dict[str, Any]:
    if migration_id is None:
        return {"was_listed": False, "is_unfinished": False, "has_errors": False}
    parameters = {"migration_id": migration_id, "queue": queue, "label": label}
    return fetch_one(connection, statement("find_waiting_objects"), parameters)


def renew_ranges(
    connection: Connection, listings: Iterable[Listing], request: EnqueueRequest, migration_id: int
) -> None:
    """Let the batches in ERROR of earlier passes take part in those that begin: an object may have come, or changed."""
    if not request.queue.makes_passes:  # those of other queues are renewed, as all theirs are
        return
    for listing in listings:
        if listing.payload is not None:
            choices = Jsonb(request.payload(listing.objects))
            call(connection, "renew_batches", migration_id, request.queue.name, choices, listing.objects.label)


def add_listings(
    connection: Connection,
    listings: Iterable[Listing],
    request: EnqueueRequest,
    tables: Sequence[Enqueued],
    target: dict[str, Any] | None = None,
) -> list[Enqueued]:
    """Put the listings in the queue, and return them; with `target` None return what would be added.

    `tables`: what the pass has added before, which counts for the request's limit. The first listing takes what is left
    of it, since nothing is known of the others before it has ended.
    """
    left = None if request.limit is None else request.limit - sum(table.entries for table in tables)
    added: list[Enqueued] = []
    for listing in listings:
        is_added = listing.payload is not None and left != 0
        if listing.payload is not None and is_added and target is not None:
            payload = listing.payload | ({} if left is None else {"limit": left})
            parameters = {"queue": request.queue.name, "payload": Jsonb(payload), **target}
            connection.execute(statement("insert_listing"), parameters)
        left = 0 if is_added and left is not None else left
        goes_on = listing.payload is None
        added.append(Enqueued(listing.objects.label, int(is_added), 0, is_listing=True, goes_on=goes_on))
    return added
