"""Tells the fault of a whole side from that of one object, by how the journeys of a batch ended."""

from collections.abc import Mapping, Sequence

from rowferry.batch import Outcome
from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    MigrationFault,
    ObjectError,
    ObjectNotFound,
    Withdrawn,
)
from rowferry.plan import Side, SideName
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.migration import Route
from rowferry_worker.objects.journey import Copied
from rowferry_worker.objects.scheduler import WHOLE_SIDE, Ended

_READS = frozenset({"HeadObject", "GetObject", "GetObjectTagging"})


def refuse_side_fault(context: BatchContext, ends: Mapping[str, Ended]) -> None:
    """Raise MigrationFault where a side is at fault: what was copied already is found to be there the next time."""
    tried = [end for end in ends.values() if not isinstance(end, Withdrawn | Cancelled)]
    if fault := next((end for end in tried if isinstance(end, WHOLE_SIDE)), None):
        raise _word_fault(context.route, fault)
    denied = [end for end in tried if isinstance(end, AccessDenied)]
    if denied and _may_be_revoked(denied, tried) and context.route.is_refused(denied[0]):
        raise _word_revocation(context.route, denied[0])
    if tried and all(isinstance(end, ObjectNotFound) for end in tried) and (lost := context.route.find_lost_bucket()):
        raise _word_fault(context.route, lost)


def _may_be_revoked(denied: Sequence[AccessDenied], tried: Sequence[Ended]) -> bool:
    """Return whether nothing shows that the operation is allowed: no object of the batch got past it."""
    if denied[0].operation in _READS:
        return len(denied) == len(tried)
    return not any(isinstance(end, Copied) and end.outcome is Outcome.MIGRATED for end in tried)


def _word_fault(route: Route, fault: ObjectError) -> MigrationFault:
    passes = isinstance(fault, CredentialsUnavailable)
    remedy = "create the bucket again, or correct the plan" if isinstance(fault, BucketNotFound) else ""
    words = f"{_name(route, fault.side)} cannot be used: {str(fault).rstrip('.')}{f'; {remedy}' if remedy else ''}"
    return MigrationFault(words, may_pass=passes)


def _word_revocation(route: Route, denied: AccessDenied) -> MigrationFault:
    words = f"{_name(route, denied.side)} refuses {denied.operation} for any key ({str(denied).rstrip('.')})"
    return MigrationFault(f"{words}; give the credentials that right again (s3:ListBucket as well)")


def _name(route: Route, name: SideName | None) -> str:
    if name is None:
        return "one of the buckets"
    side: Side = route.plan.legacy if name == "legacy" else route.plan.production
    return f"the {name} bucket {side.bucket}"
