"""What `rowferry check` finds about the queue `tag`: its condition and columns, and whether objects can be tagged."""

from collections.abc import Iterator, Mapping
from typing import cast

from rowferry.errors import ObjectError
from rowferry.http import event_loop
from rowferry.plan import ProductionSide
from rowferry.s3 import operations
from rowferry.s3.client import ObjectClient
from rowferry_enqueue.checks.buckets.bucket_errors import refuse, summarise_error
from rowferry_enqueue.checks.buckets.probe import TAGS, Probe, written_probe
from rowferry_enqueue.checks.finding import Finding, fine, note, problem
from rowferry_enqueue.checks.queues.columns import check_queue_rows
from rowferry_enqueue.checks.queues.queue_check import QueueCheck
from rowferry_queues.tag.perform import tag_object
from rowferry_queues.tag.spec import TagSettings
from rowferry_worker.objects.requests import ObjectRequests

REMEDY = "leave [queue.tag] out of the plan, or use a server that has tags"


def check(context: QueueCheck) -> Iterator[Finding]:
    """Yield what is wrong with the rows of the queue, then with its bucket."""
    for queries in context.tables:
        yield from check_queue_rows(context.connection, queries, context.spec, context.settings)
    side = context.plan.production
    if not context.may_write:
        yield note(f"not checked, since a check would write: whether {side.bucket} takes tags, for [queue.tag]")
        return
    context.on_progress("tagging a probe object")
    set_by_plan = cast("TagSettings", context.settings).tags.items()
    tags = {name: value for name, value in set_by_plan if isinstance(value, str)} or TAGS
    left: list[Finding] = []
    with context.open_bucket("production") as client, written_probe(client, side, left) as probe:
        yield from try_tags(client, probe, side, tags)
    yield from left


def try_tags(client: ObjectClient, probe: Probe, side: ProductionSide, tags: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether an object of the production server can get these tags, as workers do it, and keeps them."""
    key = f"{probe.key}-tags"
    try:
        probe.write_object(operations.put_object(key, b"a probe of rowferry check", if_none_match=False))
    except ObjectError:
        return  # the check of the bucket says it
    try:
        event_loop.run(tag_object(ObjectRequests(client.send), probe, key, tags))
    except ObjectError as error:
        if error.code == "TagsLost":
            yield problem(f"the production bucket {side.bucket} takes tags and does not keep them", REMEDY)
        elif error.code == "TagsUnknown":
            cause = error.__cause__ if isinstance(error.__cause__, ObjectError) else error
            yield problem(f"the server of {side.bucket} knows no tags ({summarise_error(cause)})", REMEDY)
        else:
            yield refuse(side, error, "tagged", f"s3:{error.operation}")
    else:
        yield fine(f"objects of the production bucket {side.bucket} can be tagged")
