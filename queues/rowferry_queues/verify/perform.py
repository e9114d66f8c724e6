"""What a batch of `verify` does: hold production objects against their legacy objects; repair them where asked to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rowferry.batch import Entry, Outcome, Performed
from rowferry.errors import ObjectConflict, ObjectNotFound
from rowferry.keys import ObjectKeys, StandingObject
from rowferry.s3.responses import Response
from rowferry_queues.folders import expand_folders, note_first
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.copies import choose_options, run_copies
from rowferry_worker.batch.objects import Judge, find_rows
from rowferry_worker.batch.ranges import is_listed, run_range
from rowferry_worker.batch.rows import look_again
from rowferry_worker.batch.second_look import look_at_sources
from rowferry_worker.batch.sources.table import find_queries
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object, log_copy, overwrite, replace_object
from rowferry_worker.copying.precedence import Precedence, find_precedence
from rowferry_worker.objects.compare import Pair, are_same, read_digest
from rowferry_worker.objects.requests import ObjectRequests
from rowferry_worker.scheduling.copy_run import ObjectResult


def perform(context: BatchContext, entries: Sequence[Entry]) -> Performed:
    """Verify the objects of production entries."""
    if is_listed(context):
        return run_range(context, entries, lambda objects: verify_listed(context, objects))
    queries = find_queries(context)
    rows, goes_on = find_rows(entries, queries.entries, "production"), False
    stays = queries.entries.rows == "stay"
    if queries.entries.names_folders:
        folders = expand_folders(context, queries.entries, rows, ("legacy", "production"))
        found = verify_objects(context, [row.objects for row in folders], stays=stays)
        rows, goes_on = note_first(context, folders, found, "production")
    else:
        found = verify_objects(context, [row.objects for row in rows], stays=stays)
    judge = Judge(found, "production", excused=ObjectNowhere)
    started, rest = judge.split_started(rows)
    results = look_again(context, queries, [judge.judge(row) for row in started], "production")
    return Performed(results, rest, goes_on)


def verify_listed(context: BatchContext, objects: Sequence[ObjectKeys]) -> dict[str, ObjectResult]:
    """Verify the copies of listed objects, and return by legacy key what was found."""
    found = verify_objects(context, [(StandingObject(keys.production, keys.legacy),) for keys in objects], stays=True)
    return {keys.legacy: found[keys.production] for keys in objects}


def verify_objects(
    context: BatchContext, objects: Iterable[Iterable[ObjectKeys | StandingObject]], *, stays: bool
) -> dict[str, ObjectResult]:
    """Verify the object of each production key once, many at once, and return what was found.

    `stays`: no row of these objects moves.
    """
    s3, payload = context.object_requests(), context.batch.payload
    copy_options = choose_options(context, stays=stays)
    options = VerifyOptions(payload.get("deep", False), payload.get("repair", "nothing"))
    # One that is optional for one row, and required for another, is required.
    listed = sorted((each for entry in objects for each in entry), key=lambda each: each.is_required)
    by_key = {each.production: each for each in listed}
    found = run_copies(
        context, lambda key: log_copy(verify_object(s3, copy_options, by_key[key], options), key, key), by_key
    )
    pairs = {key: (each.legacy, key) for key, each in by_key.items() if each.legacy is not None}
    return look_at_sources(context, copy_options, pairs, found, stays=True)


class ObjectsDiffer(ObjectConflict):
    """The production object differs from its legacy object; the code says which of them was written last."""


class ObjectNowhere(ObjectNotFound):
    """The object stands in neither bucket."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What a batch of `verify` asks for."""

    deep: bool = False
    """Read the bytes of both objects, even where their ETags are equal."""
    repair: Literal["nothing", "older", "all"] = "nothing"
    """Copy again: nothing; what is missing or older than its legacy object; whatever differs."""


REPLACE = "`rowferry verify --repair --overwrite`"


async def verify_object(
    s3: ObjectRequests, copy_options: CopyOptions, subject: StandingObject | ObjectKeys, options: VerifyOptions
) -> CopyResult:
    """Return what was found: KEPT, the production object is equal; MIGRATED, it was not and has been copied again.

    Where there is no legacy object, or no legacy key, a production object that can be read is KEPT, and so is an
    optional one that is nowhere. Raises ObjectNotFound when there is no production object (ObjectNowhere: nor a legacy
    one), ObjectsDiffer when it differs and is not to be repaired.
    """
    key, legacy_key = subject.production, subject.legacy
    existing = await s3.find("production", key)
    source = None if legacy_key is None else await s3.find("legacy", legacy_key)
    if source is None and existing is None and not subject.is_required:
        return CopyResult(Outcome.KEPT)
    if legacy_key is None or source is None:
        return await _verify_alone(s3, key, existing, options)
    if existing is None:
        if options.repair == "nothing":
            words = "there is no production object; `rowferry verify --repair` copies the legacy one"
            raise ObjectNotFound("NoProductionObject", words)
        return await _note(copy_options, legacy_key, key, await copy_object(s3, copy_options, legacy_key, key))
    pair = Pair(legacy_key, source, key, existing)
    if not await are_same(s3, pair, copy_options.copies, deep=options.deep):
        return await _resolve_difference(s3, copy_options, pair, options)
    return await _verify_properties(s3, copy_options, pair, options)


async def _verify_properties(
    s3: ObjectRequests, copy_options: CopyOptions, pair: Pair, options: VerifyOptions
) -> CopyResult:
    """Judge a production object with the right bytes by what the plan says of it, and by what its legacy object has."""
    legacy_key, source, key, existing = pair
    properties = copy_options.properties
    differences = await properties.find_differences(s3, legacy_key, key, existing)
    lost = await properties.find_lost(s3, legacy_key, source, key, existing)
    if not (differences or lost):
        return CopyResult(Outcome.KEPT)
    if options.repair == "all":
        return await overwrite(s3, copy_options, legacy_key, key)
    if lost and copy_options.timeline.switched is not None:  # the application may have given it others since
        return CopyResult(Outcome.KEPT)
    if lost and options.repair == "older":
        return await _note(
            copy_options, legacy_key, key, await replace_object(s3, copy_options, legacy_key, key, existing)
        )
    raise _describe_properties([*differences, *lost], by="--repair" if lost else "--repair --overwrite")


async def _resolve_difference(
    s3: ObjectRequests, copy_options: CopyOptions, pair: Pair, options: VerifyOptions
) -> CopyResult:
    """Repair a production object that differs, or keep it, or raise ObjectsDiffer."""
    legacy_key, _, key, existing = pair
    if options.repair == "all":
        return await overwrite(s3, copy_options, legacy_key, key)
    # What was written to the production key last may be the application's own work: only `all` overwrites that.
    copies, clocks = copy_options.copies, copy_options.clocks
    precedence = await find_precedence(s3, pair, copies, clocks, copy_options.timeline)
    if precedence == "legacy" and options.repair == "older":
        return await _note(
            copy_options, legacy_key, key, await replace_object(s3, copy_options, legacy_key, key, existing)
        )
    if precedence == "application":
        return CopyResult(Outcome.KEPT)
    raise _describe_difference(precedence)


async def _note(options: CopyOptions, legacy_key: str, key: str, repaired: CopyResult) -> CopyResult:
    """Remember what a repair has written as a copy of ours, and return the repair."""
    await options.copies.note_copy(key, repaired.etag, legacy_key, repaired.source_etag)
    return repaired


async def _verify_alone(s3: ObjectRequests, key: str, existing: Response | None, options: VerifyOptions) -> CopyResult:
    """Judge a production object that has no legacy object to equal."""
    if existing is None:
        raise ObjectNowhere("NoProductionObject", "there is no production object, and no legacy object either")
    if options.deep:
        await read_digest(s3, "production", key, existing)
    return CopyResult(Outcome.KEPT)


def _describe_difference(precedence: Precedence) -> ObjectsDiffer:
    """Return the error of a production object that differs."""
    if precedence == "legacy":
        return ObjectsDiffer(
            "LegacyIsNewer", "the legacy object was written after its copy; `rowferry verify --repair` copies it again"
        )
    if precedence == "unclear":
        words = "both objects were written at nearly the same time, so nobody can tell which of them is the last"
        return ObjectsDiffer("WrittenTogether", f"{words}; if it is the legacy one, {REPLACE} copies it")
    words = "the production object differs and was written last, by your application or by a damaged copy"
    return ObjectsDiffer("ProductionIsNewer", f"{words}; {REPLACE} replaces it")


def _describe_properties(differences: Sequence[str], *, by: str) -> ObjectsDiffer:
    words = f"the production object has the right bytes, but {', '.join(differences)}"
    return ObjectsDiffer("PropertiesDiffer", f"{words}; `rowferry verify {by}` copies it again")
