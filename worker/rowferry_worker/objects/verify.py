"""Does a production object equal its legacy object, and what to do where it does not: a journey."""

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectNotFound
from rowferry.s3.responses import Answer
from rowferry_worker.objects.compare import are_same, read_digest
from rowferry_worker.objects.copy import Way, copy_object, overwrite
from rowferry_worker.objects.journey import Copied, Journey, find


class Different(ObjectError):
    """The production object differs from its legacy object; the code says which of them was written last."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a batch of `verify` asks for."""

    deep: bool = False
    """Read the bytes of both objects, whatever their ETags say."""
    repair: Literal["nothing", "older", "all"] = "nothing"
    """Copy again: nothing; what is missing or older than its legacy object; whatever differs."""


def examine(way: Way, legacy_key: str | None, key: str, demand: Demand) -> Journey:
    """Return what was found: KEPT, the production object is equal; MIGRATED, it was not and has been copied again.

    Where there is no legacy object, or no `legacy_key`, a production object that can be read is KEPT. Raises
    ObjectNotFound when there is no production object, Different when it differs and is not to be repaired.
    """
    standing = yield from find("production", key)
    source = None if legacy_key is None else (yield from find("legacy", legacy_key))
    if legacy_key is None or source is None:
        return (yield from _examine_alone(key, standing, demand))
    if standing is None:
        return (yield from _replace_missing(way, legacy_key, key, demand))
    if (yield from are_same(legacy_key, source, key, standing, deep=demand.deep)):
        return Copied(Outcome.KEPT)
    return (yield from _replace_different(way, legacy_key, key, demand, newer=_is_newer(source, standing)))


def _examine_alone(key: str, standing: Answer | None, demand: Demand) -> Journey:
    """Judge a production object that has no legacy object to equal."""
    if standing is None:
        raise ObjectNotFound("NoProductionObject", "the row points at no object, and there is no legacy object either")
    if demand.deep:
        yield from read_digest("production", key, standing)
    return Copied(Outcome.KEPT)


def _replace_missing(way: Way, legacy_key: str, key: str, demand: Demand) -> Journey:
    if demand.repair == "nothing":
        raise ObjectNotFound("NoProductionObject", "the row points at no object; --repair copies the legacy object")
    return (yield from copy_object(way, legacy_key, key))


def _replace_different(way: Way, legacy_key: str, key: str, demand: Demand, *, newer: bool) -> Journey:
    """Copy over a production object that differs; `newer`: its legacy object was written after it.

    What was written to the production key last may be the application's own work: only `all` overwrites that.
    """
    if demand.repair == "all" or (demand.repair == "older" and newer):
        return (yield from overwrite(way, legacy_key, key))
    if newer:
        raise Different("LegacyIsNewer", "the legacy object was written after its copy; --repair copies it again")
    words = "the production object differs and was written last, by your application or by a damaged copy"
    raise Different("ProductionIsNewer", f"{words}; --repair --overwrite replaces it")


def _is_newer(source: Answer, standing: Answer) -> bool:
    """Return whether the legacy object was written after the production object; false within one second."""
    times = [answer.headers.get("last-modified", "") for answer in (source, standing)]
    try:
        written, copied = (parsedate_to_datetime(time) for time in times)
    except ValueError:
        return False
    return written > copied
