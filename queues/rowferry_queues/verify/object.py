"""Verifies that a production object equals its legacy object, and repairs it where it does not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rowferry.batch import Outcome
from rowferry.errors import ObjectConflict, ObjectNotFound
from rowferry.keys import ObjectKeys, StandingObject
from rowferry.s3.responses import Response
from rowferry_worker.copying.copy import CopyOptions, CopyResult, copy_object, overwrite, replace_object
from rowferry_worker.copying.precedence import Precedence, find_precedence
from rowferry_worker.objects.compare import Pair, are_same, read_digest
from rowferry_worker.objects.requests import ObjectRequests


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
    differences = await copy_options.properties.find_differences(s3, legacy_key, key, existing)
    if not differences:
        return CopyResult(Outcome.KEPT)
    if options.repair == "all":
        return await overwrite(s3, copy_options, legacy_key, key)
    raise _describe_properties(differences)


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


def _describe_properties(differences: Sequence[str]) -> ObjectsDiffer:
    words = f"the production object has the right bytes, but {', '.join(differences)}"
    return ObjectsDiffer("PropertiesDiffer", f"{words}; {REPLACE} copies it again")
