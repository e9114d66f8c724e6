"""What `rowferry check` finds about the queue `tag`: its condition and columns, and whether objects can be tagged."""

from collections.abc import Iterator

from rowferry_enqueue.checks.buckets.tags import check_tags
from rowferry_enqueue.checks.finding import Finding
from rowferry_enqueue.checks.queues.queue_check import QueueCheck
from rowferry_enqueue.checks.queues.rows import check_queue_rows


def check(context: QueueCheck) -> Iterator[Finding]:
    """Yield what is wrong with the rows of the queue, then with its bucket."""
    for queries in context.tables:
        yield from check_queue_rows(context.connection, queries, context.spec, context.settings)
    yield from check_tags(context)
