"""Station 3 of 5: bring one object to its production key, and know what stood there before."""

from dataclasses import dataclass, field

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, ObjectError, ObjectRejected, PreconditionFailed, ServerFault
from rowferry.plan import OnConflict
from rowferry.s3.responses import Answer
from rowferry_worker.objects.compare import are_same
from rowferry_worker.objects.conditional_writes import Condition, Guard, Standing
from rowferry_worker.objects.journey import Copied, Journey, Steps, find, head
from rowferry_worker.objects.tags import Tagging
from rowferry_worker.objects.transfer import Carrier

ASK_WITH_BYTES = 1024 * 1024
"""The largest object, as far as its size is known, that is written twice to learn whether a condition is honoured."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the objects of a batch travel."""

    carrier: Carrier
    condition: Condition
    on_conflict: OnConflict = "fail"
    tagging: Tagging = field(default_factory=Tagging)


def copy_object(way: Way, source_key: str, target_key: str) -> Journey:
    """Make the production object stand, unless a different one does.

    MIGRATED: written now. KEPT: an identical object stood there (or any, if `on_conflict` is keep). CONFLICT: a
    different one stands there and was left alone. Raises ObjectNotFound when there is no legacy object, and any
    other ObjectError as it comes.
    """
    guard = Guard(way.condition, target_key)
    try:
        if way.carrier.moves_bytes and (way.condition.expects_standing or way.on_conflict == "keep"):
            yield from guard.look_early()
        written = yield from way.carrier.carry(source_key, target_key, guard, way.tagging)
    except Standing as found:
        return (yield from _settle(way, source_key, target_key, found.answer))
    except PreconditionFailed as refusal:
        way.condition.expects_standing = True
        standing = yield from find("production", target_key)
        if standing is None:
            raise ServerFault(refusal.code, "the production object came and went; try again") from refusal
        return (yield from _settle(way, source_key, target_key, standing))
    operation = way.carrier.operation
    is_small = written.operation == operation and written.size_bytes <= ASK_WITH_BYTES
    if is_small and way.condition.begin_asking(operation):
        yield from _ask_condition(way, source_key, target_key, written.etag)
    return Copied(Outcome.MIGRATED, written.size_bytes)


def overwrite(way: Way, source_key: str, target_key: str) -> Journey:
    """Write the production object whatever stands there: it was asked for."""
    guard = Guard(way.condition, target_key, "overwrite")
    written = yield from way.carrier.carry(source_key, target_key, guard, way.tagging)
    return Copied(Outcome.MIGRATED, written.size_bytes)


def _settle(way: Way, source_key: str, target_key: str, standing: Answer) -> Journey:
    """Return what to make of an object that stands at the production key already."""
    if way.on_conflict == "keep":
        return Copied(Outcome.KEPT)
    legacy = yield from head("legacy", source_key)
    if (yield from are_same(source_key, legacy, target_key, standing)):
        yield from way.tagging.mend(source_key, legacy, target_key, standing)
        return Copied(Outcome.KEPT)
    if way.on_conflict == "overwrite":
        return (yield from overwrite(way, source_key, target_key))
    return Copied(Outcome.CONFLICT)


def _ask_condition(way: Way, source_key: str, target_key: str, etag: str) -> Steps[None]:
    """Write the object that this journey has just written once more, under the condition, and note what happens.

    `etag` is that object's: what has taken its place meanwhile is left alone.
    """
    operation = way.carrier.operation
    try:
        guard = Guard(way.condition, target_key, "ask", etag)
        yield from way.carrier.carry(source_key, target_key, guard, way.tagging)
    except Cancelled:
        way.condition.answer(operation, "unknown")
        raise
    except PreconditionFailed as refusal:
        # A 409 or a 304 may have other reasons.
        is_clear = refusal.code in {"PreconditionFailed", "HTTP 412"}
        way.condition.answer(operation, "honoured" if is_clear else "unknown")
    except ObjectRejected:
        way.condition.answer(operation, "ignored")
    except ObjectError:
        way.condition.answer(operation, "unknown")
    else:
        way.condition.answer(operation, "ignored")
