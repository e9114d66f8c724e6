"""Sources: which entries a batch means. No other code knows what a payload says of them.

A source is chosen by the payload. Halving, the time budget and retries of a part are made of `Source.cut` alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rowferry.batch import Entry
from rowferry.plan import SideName
from rowferry.queue_spec import SourceName
from rowferry_worker.batch.context import BatchContext, Patch
from rowferry_worker.batch.sources.items import ItemsSource
from rowferry_worker.batch.sources.listing import ListingSource
from rowferry_worker.batch.sources.table import TableSource


class Source(Protocol):
    """Which entries a batch means."""

    def expand(self, context: BatchContext) -> bool:
        """Put batches in the queue for what this one stands for. Return False where it is work itself."""
        ...

    def read(self, context: BatchContext) -> list[Entry]:
        """Return the entries that still need the work, in an order that is the same in every attempt."""
        ...

    def cut(self, payload: Mapping[str, Any], entries: Sequence[Entry], index: int) -> tuple[Patch, Patch]:
        """Return two patches of the payload: of the entries before `index` (above 0), and of those from it on.

        Together they cover what is left of the batch, without overlap.
        """
        ...


_SOURCES: Mapping[SourceName, Source] = {"items": ItemsSource(), "listing": ListingSource(), "table": TableSource()}


def find_source(payload: Mapping[str, Any]) -> Source:
    """Return the source of a batch."""
    return _SOURCES[name_source(payload)]


def name_source(payload: Mapping[str, Any]) -> SourceName:
    """Return the source of a batch as the specification of a queue names it."""
    if "items" in payload:
        return "items"
    return "listing" if "objects" in payload else "table"


def list_sides(payload: Mapping[str, Any]) -> frozenset[SideName]:
    """Return the buckets that the entries of a batch are read from."""
    return frozenset({payload.get("side", "legacy")}) if "objects" in payload else frozenset()


def updates_table(payload: Mapping[str, Any]) -> bool:
    """Return whether the entries are rows of a table of the plan."""
    return name_source(payload) == "table"
