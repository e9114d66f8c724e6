"""Station 3 of 5: bring one object to its production key, and know what stood there before."""

from collections.abc import Generator
from dataclasses import dataclass

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.plan import OnConflict
from rowferry.s3_answer import Answer
from rowferry.s3_request import Request
from rowferry_worker.carriers import Carrier
from rowferry_worker.compare import is_same_object
from rowferry_worker.condition import Condition
from rowferry_worker.journey import Copied, Journey, find

ASK_WITH_BYTES = 1024 * 1024
"""The largest object, as far as its size is known, that is written twice to learn whether a condition is honoured."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the objects of a batch travel."""

    carrier: Carrier
    condition: Condition
    on_conflict: OnConflict = "fail"


def copy_object(way: Way, source_key: str, target_key: str) -> Journey:
    """Make the production object stand, unless a different one does.

    MIGRATED: written now. KEPT: an identical object stood there (or any, if `on_conflict` is keep). CONFLICT: a
    different one stands there and was left alone. Raises ObjectNotFound when there is no legacy object, and any
    other ObjectError as it comes.
    """
    guarded = way.condition.honoured
    if not guarded:
        standing = yield from find("production", target_key)
        if standing is not None:
            return (yield from _settle(way, source_key, target_key, standing))
    try:
        size_bytes = yield from way.carrier.carry(source_key, target_key, if_none_match=guarded)
    except PreconditionFailed as refusal:
        standing = yield from find("production", target_key)
        if standing is None:
            raise ServerFault(refusal.code, "the production object came and went; try again") from refusal
        return (yield from _settle(way, source_key, target_key, standing))
    if size_bytes <= ASK_WITH_BYTES and way.condition.begin_asking():
        yield from _ask_condition(way, source_key, target_key)
    return Copied(Outcome.MIGRATED, size_bytes)


def _settle(way: Way, source_key: str, target_key: str, standing: Answer) -> Journey:
    """Return what to make of an object that stands at the production key already."""
    if way.on_conflict == "keep":
        return Copied(Outcome.KEPT)
    if (yield from is_same_object(source_key, target_key, standing)):
        return Copied(Outcome.KEPT)
    if way.on_conflict == "overwrite":
        size_bytes = yield from way.carrier.carry(source_key, target_key, if_none_match=False)
        return Copied(Outcome.MIGRATED, size_bytes)
    return Copied(Outcome.CONFLICT)


def _ask_condition(way: Way, source_key: str, target_key: str) -> Generator[Request, Answer, None]:
    """Write the object that this journey has just written once more, under the condition, and note what happens."""
    try:
        yield from way.carrier.carry(source_key, target_key, if_none_match=True)
    except PreconditionFailed:
        way.condition.answer("honoured")
    except ObjectRejected:
        way.condition.answer("ignored")
    except ObjectError:
        way.condition.answer("unknown")
    else:
        way.condition.answer("ignored")
