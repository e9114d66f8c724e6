"""What a batch of `inspect` does: read each of its objects once, compute facts on the way, and write them into rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from msgspec import structs

from rowferry.batch import Entry, Outcome, Performed
from rowferry.errors import ObjectError
from rowferry.functions import load_function
from rowferry.http import event_loop
from rowferry.keys import ObjectKeys
from rowferry.plan import BucketPrefix, SideName
from rowferry.s3.operations import get_object
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES
from rowferry_queues.inspect.computing_process import inspect_in_process
from rowferry_queues.inspect.content import inspect
from rowferry_queues.inspect.spec import InspectSettings
from rowferry_queues.inspect.writing import write_facts
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import run_copies
from rowferry_worker.batch.objects import Judge, MappedRow, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.sources import updates_table
from rowferry_worker.batch.sources.listing import find_prefix
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.compute import compute
from rowferry_worker.copying.copy import CopyResult, log_copy
from rowferry_worker.objects.memory import BodyBudget
from rowferry_worker.objects.pipe import PIPE_BYTES
from rowferry_worker.objects.requests import ObjectRequests, demand, read_etag, size_of
from rowferry_worker.scheduling.copy_run import ObjectResult

WHOLE_BYTES = 128 * 1024
"""The largest object that is taken whole: it comes with its headers."""
WORK_BYTES = 128 * 1024
"""What the work on an object may hold beside its body."""


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Inspect the objects of entries, and write the facts."""
    settings = cast("InspectSettings", context.settings)
    if is_listed(context):
        return inspect_listed(context, settings, entries)
    if not updates_table(context.batch.payload):
        return inspect_rows(context, settings, [name_object(each, each.key) for each in entries])
    queries = find_queries(context)
    inspected = inspect_rows(context, settings, find_rows(entries, queries.entries, settings.side))
    return replace(inspected, results=look_again(context, queries, inspected.results, settings.side))


def name_object(entry: Entry, key: str) -> MappedRow:
    """Return an entry that has one object."""
    return MappedRow(entry, (ObjectKeys(key, key),))


def inspect_rows(context: BatchContext, settings: InspectSettings, rows: Sequence[MappedRow]) -> Performed:
    """Inspect the objects of rows, or of items, that name their keys."""
    keys = [key for row in rows for key in row.list_keys(settings.side)]
    by_key = run_inspections(context, settings, settings.side, keys)
    started, rest = Judge(by_key, settings.side).split_started(rows)
    return Performed(write_facts(context, settings, started, by_key), rest)


def inspect_listed(context: BatchContext, settings: InspectSettings, entries: Sequence[Entry]) -> Performed:
    """Inspect objects that no row names; of [[objects]], those of the side that the settings name."""
    prefix = find_prefix(context)
    side = prefix.side if isinstance(prefix, BucketPrefix) else settings.side
    keys: dict[str, str] = {}
    found: dict[str, ObjectResult] = {}

    def work(objects: Sequence[ObjectKeys]) -> Mapping[str, ObjectResult]:
        keys.update({each.legacy: each.production if side == "production" else each.legacy for each in objects})
        found.update(run_inspections(context, settings, side, keys.values()))
        return {listed: found[key] for listed, key in keys.items()}

    listed = run_range(context, entries, work)
    others = [each for each in listed.results if each.outcome is not Outcome.MIGRATED]
    read = [each.entry for each in listed.results if each.outcome is Outcome.MIGRATED]
    rows = [name_object(entry, keys[entry.key]) for entry in read]
    return replace(listed, results=others + write_facts(context, settings, rows, found))


def run_inspections(
    context: BatchContext, settings: InspectSettings, side: SideName, keys: Iterable[str]
) -> dict[str, ObjectResult]:
    """Inspect each object once, many at once, and return what was found by key."""
    if settings.function is not None:
        load_function(settings.function)
    s3, bodies = context.object_requests(), context.migration.bodies
    return run_copies(context, lambda key: log_copy(inspect_object(s3, bodies, settings, side, key), key, key), keys)


async def inspect_object(
    s3: ObjectRequests, bodies: BodyBudget, settings: InspectSettings, side: SideName, key: str
) -> CopyResult:
    """Return the facts of an object as the result's value. Raises ContentFault, and any ObjectError of its GET.

    `bodies`: what the bodies of the process may hold. Where a body breaks off, the object is read again from its first
    byte, and the work begins anew.
    """
    if settings.function is None and settings.facts <= {"size"}:
        return CopyResult(Outcome.MIGRATED, value={"size": size_of(await s3.head(side, key))})
    request = structs.replace(get_object(side, key), stream_above=WHOLE_BYTES)
    for tried in range(1, TRIES + 1):
        with await bodies.hold() as hold:
            response = await s3.send(request)
            try:
                demand(read_etag, response, request)
                await s3.refuse_web_server(request, response)
                hold.resize(WORK_BYTES + (PIPE_BYTES if response.stream else 2 * len(response.body)))
                return await find_facts(response, settings, key)
            except ObjectError as error:
                if response.stream is None:
                    raise
                broken = error
            finally:
                if response.stream is not None:
                    response.stream.wake()
                    response.stream.close()
        await s3.wait_before_retry(side, broken, tried, TRIES)
        del broken  # its frames hold what was read
    raise AssertionError(TRIES)  # the last try returns or raises


async def find_facts(response: Response, settings: InspectSettings, key: str) -> CopyResult:
    """Return the facts of a response's object as the result's value. Raises ContentFault, and errors of its body."""
    work = partial(compute, inspect) if settings.function is None else inspect_in_process
    facts = await work(read_chunks(response), settings, key)
    return CopyResult(Outcome.MIGRATED, response.body_bytes, value=facts)


def read_chunks(response: Response) -> Iterator[bytes]:
    """Yield the body; blocks a thread that is not the event loop's."""
    if response.stream is None:
        yield response.body
        return
    while chunk := b"".join(event_loop.submit(response.stream.read()).result()):
        yield chunk
