"""Step 2 of 5, of items: the payload names the entries itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowferry.batch import Entry
from rowferry_worker.batch.context import BatchContext, Patch, find_meant


class ItemsSource:
    """`items` of the payload: objects with an `id`, a text that is unique in the batch, and what the queue needs."""

    def expand(self, context: BatchContext) -> bool:
        """Return False: the batch is work itself."""
        del context
        return False

    def read(self, context: BatchContext) -> list[Entry]:
        """Return the items that the last attempt has left, each with itself as its only value."""
        payload = context.batch.payload
        meant = find_meant(payload)
        items = [item for item in payload["items"] if meant is None or item["id"] in meant]
        return [Entry(item["id"], str(item.get("key", item["id"])), values=(item,)) for item in items]

    def cut(self, payload: Mapping[str, Any], entries: Sequence[Entry], index: int) -> tuple[Patch, Patch]:
        """Return the items before `index` with those that are settled, and the others."""
        rest = {entry.id for entry in entries[index:]}
        items = payload["items"]
        before = [item for item in items if item["id"] not in rest]
        return {"items": before}, {"items": [item for item in items if item["id"] in rest]}
