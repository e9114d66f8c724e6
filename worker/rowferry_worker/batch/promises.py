"""Calls the work of a queue, and refuses what would lose entries: a package of somebody else may break its promises."""

from collections import Counter
from collections.abc import Sequence

from rowferry.batch import Entry, EntryResult
from rowferry.errors import QueueFault
from rowferry.queue_spec import SOURCE_WORDS, describe_fault
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sources import name_source


def call_perform(context: BatchContext, entries: Sequence[Entry]) -> list[EntryResult]:
    """Return the queue's results. Raises QueueFault where they are not one for each entry, or it wants to end us.

    Entries that it has left for later (`context.remaining`) need none.
    """
    name = context.queue.spec.name
    try:
        results = context.queue.perform(context, entries)
    except SystemExit as error:
        raise QueueFault(f"The work of the queue {name} failed ({describe_fault(error)}): mend its package.") from error
    left = Counter(_ids(context.remaining)) - Counter(_ids(context.ended))
    if Counter(_ids([result.entry for result in results])) + left != Counter(_ids(entries)):
        owed = len(entries) - left.total()
        raise QueueFault(
            f"The work of the queue {name} returned {len(results)} results for {owed} entries, not just one result for "
            "each entry: mend its package."
        )
    return results


def refuse_source(context: BatchContext) -> None:
    """Raise QueueFault where the queue does not work on such batches: an operator made another queue lead to it.

    Parts of an upload are items that their queue has made for itself.
    """
    spec, source = context.queue.spec, name_source(context.batch.payload)
    if source not in spec.sources and not context.batch.is_of_parts:
        takes = " and ".join(SOURCE_WORDS[each] for each in sorted(spec.sources))
        raise QueueFault(
            f"The queue {spec.name} works on {takes}, not on {SOURCE_WORDS[source]}: correct `next` of the queues that "
            "lead to it, and delete this batch."
        )


def _ids(entries: Sequence[Entry]) -> list[str]:
    return [entry.id for entry in entries]
