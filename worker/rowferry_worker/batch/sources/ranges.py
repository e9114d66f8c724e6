"""Ranges: `first` and `last` of a payload, both included, of ids or of keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowferry.batch import Entry
from rowferry_worker.batch.context import Patch


class RangeSource:
    """A source whose batches mean a range."""

    def cut(self, payload: Mapping[str, Any], entries: Sequence[Entry], index: int) -> tuple[Patch, Patch]:
        """Return what the payload says of the entries before `index`, and of those from it on."""
        return {"last": entries[index - 1].id}, {"first": entries[index].id, "last": payload["last"]}
