"""What a batch of `parts` does: begin and complete the uploads of large objects, or send some parts of one."""

from collections.abc import Sequence

from rowferry.batch import Entry, EntryResult
from rowferry_queues.parts.objects import perform_objects
from rowferry_queues.parts.send import send_parts
from rowferry_worker.batch.context import BatchContext


def perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Work on the large ones among the objects of the entries, or on parts; return one result for each of them."""
    return send_parts(context, entries) if context.batch.is_of_parts else perform_objects(context, entries)
