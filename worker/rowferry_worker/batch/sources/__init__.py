"""Sources: which entries a batch means. No other code knows what a payload says of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowferry.batch import Entry
from rowferry.plan import SideName
from rowferry.queue_spec import SourceName
from rowferry_worker.batch.context import BatchContext, Patch, find_meant
from rowferry_worker.batch.sources.listing import read_listing
from rowferry_worker.batch.sources.table import read_rows


def name_source(payload: Mapping[str, Any]) -> SourceName:
    """Return the source of a batch as the specification of a queue names it."""
    if "items" in payload:
        return "items"
    return "listing" if "objects" in payload else "table"


def is_to_be_cut(payload: Mapping[str, Any]) -> bool:
    """Return whether a batch is a listing that other batches are to be made of: it is no work itself."""
    return name_source(payload) == "listing" and payload["objects"] == "listing"


def read_source(context: BatchContext) -> list[Entry]:
    """Return the entries that still need the work, in an order that is the same in every attempt."""
    match name_source(context.batch.payload):
        case "items":
            return read_items(context.batch.payload)
        case "listing":
            return read_listing(context)
        case "table":
            return read_rows(context)


def read_items(payload: Mapping[str, Any]) -> list[Entry]:
    """Return the items that the last attempt has left, each with itself as its only value.

    Items are objects with an `id`, a text that is unique in the batch, and what the queue needs.
    """
    meant = find_meant(payload)
    items = [item for item in payload["items"] if meant is None or item["id"] in meant]
    return [Entry(item["id"], str(item.get("key", item["id"])), values=(item,)) for item in items]


def cut(payload: Mapping[str, Any], entries: Sequence[Entry], index: int) -> tuple[Patch, Patch]:
    """Return two patches of the payload: of the entries before `index` (above 0), and of those from it on.

    Together they cover what is left of the batch, without overlap. Halving, the time budget and retries of a part are
    made of this alone. Items that are settled go with the first ones.
    """
    if name_source(payload) != "items":
        return {"last": entries[index - 1].id}, {"first": entries[index].id, "last": payload["last"]}
    rest = {entry.id for entry in entries[index:]}
    items = payload["items"]
    before = [item for item in items if item["id"] not in rest]
    return {"items": before}, {"items": [item for item in items if item["id"] in rest]}


def list_sides(payload: Mapping[str, Any]) -> frozenset[SideName]:
    """Return the buckets that the entries of a batch are read from."""
    return frozenset({payload.get("side", "legacy")}) if "objects" in payload else frozenset()


def updates_table(payload: Mapping[str, Any]) -> bool:
    """Return whether the entries are rows of a table of the plan."""
    return name_source(payload) == "table"
