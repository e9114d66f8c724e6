"""What `rowferry check` finds about the queue `tag`: its condition and columns, and whether objects can be tagged."""

from collections.abc import Iterator

from rowferry.errors import AccessDenied, ObjectError, ObjectRejected, ServerFault
from rowferry.plan import ProductionSide
from rowferry.s3 import operations
from rowferry.s3.responses import Response, read_tags
from rowferry_enqueue.checks.buckets.bucket_errors import check_bucket_exists, refuse, summarise_error
from rowferry_enqueue.checks.buckets.probe import TAGS, Probe, written_probe
from rowferry_enqueue.checks.finding import Finding, fine, note, problem
from rowferry_enqueue.checks.queues.columns import check_queue_rows
from rowferry_enqueue.checks.queues.queue_check import QueueCheck


def check(context: QueueCheck) -> Iterator[Finding]:
    """Yield what is wrong with the rows of the queue, then with its bucket."""
    for queries in context.tables:
        yield from check_queue_rows(context.connection, queries, context.spec, context.settings)
    yield from check_tags(context)


BODY = b"a probe of rowferry check"


def check_tags(context: QueueCheck) -> Iterator[Finding]:
    """Yield whether the production server takes tags for an object that it has, and still has them afterwards."""
    side, name = context.plan.production, context.spec.name
    if not context.may_write:
        yield note(f"not checked, since a check would write: whether {side.bucket} takes tags, for [queue.{name}]")
        return
    context.on_progress("tagging a probe object")
    left: list[Finding] = []
    with context.open_bucket("production") as client:
        if any(finding.level == "problem" for finding in check_bucket_exists(client, side)):
            return  # the check of the bucket says it
        with written_probe(client, side, left) as probe:
            yield from try_tags(probe, side, name)
    yield from left


def try_tags(probe: Probe, side: ProductionSide, queue: str) -> Iterator[Finding]:
    """Write an object without tags, read those, give it some, and look at them."""
    key = f"{probe.key}-tags"
    try:
        probe.write_object(operations.put_object(key, BODY, if_none_match=False))
    except ObjectError:
        return  # the check of the bucket says it
    try:
        found = _read(probe, key)
    except ObjectError as error:
        # A server without tags takes the request that puts some for the object itself: none is sent.
        yield _refuse(side, queue, error, "s3:GetObjectTagging")
        return
    version = found.headers.get("x-amz-version-id")
    try:
        probe.ask(operations.put_object_tagging(key, tuple(TAGS.items()), version=version))
        held = dict(read_tags(_read(probe, key).body))
    except ObjectError as error:
        yield _refuse(side, queue, error, "s3:PutObjectVersionTagging" if version else "s3:PutObjectTagging")
        return
    if held != TAGS:
        yield problem(f"the production bucket {side.bucket} takes tags and does not keep them", _advise(queue))
    else:
        words = ", each version by itself" if version else ""
        yield fine(f"objects of the production bucket {side.bucket} can be tagged{words}")


def _read(probe: Probe, key: str) -> Response:
    """Return a list of tags. Raises ObjectError where the server answers with the object instead, as for any GET."""
    response = probe.ask(operations.get_object_tagging("production", key))
    if response.etag is not None:
        raise ObjectRejected("NotImplemented", "it answers with the object itself")
    read_tags(response.body)
    return response


def _refuse(side: ProductionSide, queue: str, error: ObjectError, rights: str) -> Finding:
    if isinstance(error, AccessDenied) or not isinstance(error, ObjectRejected | ServerFault):
        return refuse(side, error, "tagged", rights)
    return problem(f"the server of {side.bucket} knows no tags ({summarise_error(error)})", _advise(queue))


def _advise(queue: str) -> str:
    return f"leave [queue.{queue}] out of the plan, or use a server that has tags"
