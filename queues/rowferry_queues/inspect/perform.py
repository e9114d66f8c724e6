"""What a batch of `inspect` does: read each of its objects once, compute facts on the way, and write them into rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rowferry.batch import Entry, Outcome, Performed
from rowferry.errors import RowferryError
from rowferry.functions import load_function
from rowferry.keys import ObjectKeys
from rowferry.plan import BucketPrefix, SideName
from rowferry.queue_spec import describe_fault
from rowferry.s3.responses import Response
from rowferry_queues.inspect.computing_process import compute_in_process
from rowferry_queues.inspect.content import ContentFault
from rowferry_queues.inspect.function import inspect
from rowferry_queues.inspect.reading import read_object, read_size
from rowferry_queues.inspect.spec import IMAGE_HEAD_BYTES, InspectSettings
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
from rowferry_worker.objects.requests import ObjectRequests, size_of
from rowferry_worker.scheduling.copy_run import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Inspect the objects of entries, and write the facts."""
    settings = cast("InspectSettings", context.settings)
    if is_listed(context):
        return inspect_listed(context, settings, entries)
    if not updates_table(context.batch.payload):
        return inspect_rows(context, settings, [MappedRow(each, (ObjectKeys(each.key, each.key),)) for each in entries])
    queries = find_queries(context)
    rows = find_rows(entries, queries.entries, settings.side)
    inspected = inspect_rows(context, settings, rows)
    return replace(inspected, results=look_again(context, queries, inspected.results, settings.side))


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
    key_of: dict[str, str] = {}
    found: dict[str, ObjectResult] = {}

    def work(objects: Sequence[ObjectKeys]) -> Mapping[str, ObjectResult]:
        key_of.update({keys.legacy: keys.production if side == "production" else keys.legacy for keys in objects})
        found.update(run_inspections(context, settings, side, key_of.values()))
        return {listed: found[key] for listed, key in key_of.items()}

    listed = run_range(context, entries, work)
    others = [each for each in listed.results if each.outcome is not Outcome.MIGRATED]
    keys = {each.entry: key_of[each.entry.key] for each in listed.results if each.outcome is Outcome.MIGRATED}
    read = [MappedRow(entry, (ObjectKeys(key, key),)) for entry, key in keys.items()]
    return replace(listed, results=others + write_facts(context, settings, read, found))


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
    """Return the facts of an object as the result's value. Raises ContentFault, and any ObjectError of its GET."""

    async def work(response: Response, chunks: Iterator[bytes]) -> CopyResult:
        size, told = read_size(response), response.headers.get("content-encoding", "")
        if settings.function is None:
            facts = await compute(inspect, chunks, settings, key, told, is_cut=response.body_bytes < size)
        else:
            facts = await call_function(chunks, settings, key, told)
        return CopyResult(Outcome.MIGRATED, response.body_bytes, value={**facts, "size": size})

    if settings.function is None and settings.facts <= {"size"}:
        return CopyResult(Outcome.MIGRATED, value={"size": size_of(await s3.head(side, key))})
    return await read_object(s3, bodies, side, key, work, head_bytes=IMAGE_HEAD_BYTES if settings.is_of_head else None)


async def call_function(chunks: Iterator[bytes], settings: InspectSettings, key: str, told: str) -> dict[str, Any]:
    """Return what `inspect` returns, of a process that is killed where the function does not end."""
    try:
        return await compute_in_process(inspect, chunks, settings, key, told, seconds=settings.function_seconds)
    except TimeoutError:
        words = f"the function did not end within {settings.function_seconds:g} s (function_seconds)"
        raise ContentFault("FunctionTimedOut", words) from None
    except RowferryError:
        raise
    except Exception as error:  # noqa: BLE001 - its process has ended, or cannot send what the function returned
        raise ContentFault("FunctionFailed", f"the function failed with {describe_fault(error)}") from None
