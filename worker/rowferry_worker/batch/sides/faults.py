"""What the copies of a batch tell of a side: nothing is held against an object that the server has done to all."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    MigrationFault,
    NotStarted,
    ObjectError,
    ObjectNotFound,
    ServerUnavailable,
    TimedOut,
    Unreachable,
)
from rowferry.plan import Plan, SideName
from rowferry.s3.operations import head_object
from rowferry_worker.batch.sides.questions import (
    ask_all,
    ask_without_object,
    find_lost_bucket,
    is_denied_now,
    is_revoked,
)
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.migration import MigrationContext
from rowferry_worker.scheduling.evidence import READS, Operation, is_suspect, name_operation
from rowferry_worker.scheduling.scheduler import WHOLE_SIDE, ObjectResult

PAUSE_AFTER = timedelta(minutes=30)
"""For so long nothing but one operation fails, for every object: then a person must look, and the migration pauses."""
_GONE = "HTTP 404"
"""The code of a 404 without S3's error, as HEAD has it, and a web server that knows nothing of the bucket."""

Results = Mapping[str, ObjectResult]
"""How the copy of each object ended, by its key."""


def judge_sides(migration: MigrationContext, by_key: Results) -> Results:
    """Return the results with what was the server's as ServerUnavailable, which costs no attempt.

    Raises MigrationFault where a person must mend a side: what was copied already is found to be there the next time.
    """
    refuse_side_fault(migration, by_key)
    return _hold_against_server(migration, _look_for_missing(migration, by_key))


def refuse_side_fault(migration: MigrationContext, by_key: Results) -> None:
    """Raise MigrationFault where a side is at fault."""
    tried = [result for result in by_key.values() if not isinstance(result, NotStarted | Cancelled)]
    if fault := next((result for result in tried if isinstance(result, WHOLE_SIDE)), None):
        raise _describe_fault(migration.plan, fault)
    _refuse_revocation(migration, tried)
    missing = [result for result in tried if isinstance(result, ObjectNotFound)]
    is_doubtful = len(missing) == len(tried) or any(result.code == _GONE for result in missing)
    if missing and is_doubtful and (lost := find_lost_bucket(migration)):
        raise _describe_fault(migration.plan, lost)


def _refuse_revocation(migration: MigrationContext, tried: Sequence[ObjectResult]) -> None:
    """Raise MigrationFault where what was denied for an object is denied for others as well."""
    denied = [result for result in tried if isinstance(result, AccessDenied)]
    if denied and _may_be_revoked(migration, denied, tried) and is_revoked(migration, denied[0]):
        raise _describe_revocation(migration.plan, denied[0])
    for one in {name_operation(result): result for result in denied}.values():
        if is_denied_now(migration, one):
            raise _describe_revocation(migration.plan, one)


def _look_for_missing(migration: MigrationContext, by_key: Results) -> Results:
    """Return the results, with ServerUnavailable for what is there, and was not for a while.

    A 404 that is none of S3's may come of whatever answered then in the server's place.
    """
    doubtful = {key: result for key, result in by_key.items() if isinstance(result, ObjectNotFound)}
    doubtful = {key: result for key, result in doubtful.items() if result.code == _GONE and result.side == "legacy"}
    if not doubtful:
        return by_key
    found = ask_all(migration, [head_object("legacy", key) for key in doubtful])
    there = {
        key: _unavailable(result)
        for (key, result), again in zip(doubtful.items(), found, strict=True)
        if not isinstance(again, ObjectNotFound)
    }
    return {**by_key, **there}


def _hold_against_server(migration: MigrationContext, by_key: Results) -> Results:
    """Return the results, with ServerUnavailable for what is the server's own and for what was not begun for it.

    Raises MigrationFault where an operation has failed for too long, and the server answers others well.
    """
    suspects = [result for result in by_key.values() if isinstance(result, ObjectError) and is_suspect(result)]
    if not suspects:
        return by_key
    failing = {name_operation(result) for result in suspects if result.is_of_side}
    doubtful = {name_operation(result): result for result in suspects if name_operation(result) not in failing}
    down = failing | set(_find_down(migration, doubtful))
    if not down:
        return by_key
    for operation in failing:
        if migration.evidence.failing_for(operation) > PAUSE_AFTER:
            failure = next(each for each in suspects if name_operation(each) == operation)
            raise _describe_failure(migration.plan, failure)
    seen = next(result for result in suspects if name_operation(result) in down)
    return {key: _excuse(result, down, seen) for key, result in by_key.items()}


def _excuse(result: ObjectResult, down: set[Operation], seen: ObjectError) -> ObjectResult:
    if isinstance(result, NotStarted):
        return _unavailable(seen)
    if isinstance(result, ObjectError) and is_suspect(result) and name_operation(result) in down:
        return _unavailable(result)
    return result


def _unavailable(error: ObjectError) -> ServerUnavailable:
    held = ServerUnavailable(error.code, error.message)
    held.side, held.operation, held.where = error.side, error.operation, error.where
    return held


def _find_down(migration: MigrationContext, doubtful: Mapping[Operation, ObjectError]) -> Iterable[Operation]:
    """Yield the operations that fail for a key without an object as well."""
    for operation, error in doubtful.items():
        answer = ask_without_object(migration, error)
        if answer is not None and (is_suspect(answer) or isinstance(answer, (Unreachable, TimedOut))):
            yield operation


def _may_be_revoked(migration: MigrationContext, denied: Sequence[AccessDenied], tried: Sequence[ObjectResult]) -> bool:
    """Return whether nothing shows that the operation is allowed: no object of the batch got past it."""
    if migration.evidence.is_denied(name_operation(denied[0])):
        return True
    if denied[0].operation in READS:
        return all(isinstance(result, AccessDenied | ObjectNotFound) for result in tried)
    return not any(isinstance(result, CopyResult) and result.outcome is Outcome.MIGRATED for result in tried)


def _describe_fault(plan: Plan, fault: ObjectError) -> MigrationFault:
    passes = isinstance(fault, CredentialsUnavailable)
    remedy = "; create the bucket again, or correct the plan" if isinstance(fault, BucketNotFound) else ""
    words = f"{_name(plan, fault.side)} cannot be used: {str(fault).rstrip('.')}{remedy}"
    return MigrationFault(words, may_pass=passes)


def _describe_revocation(plan: Plan, denied: AccessDenied) -> MigrationFault:
    words = f"{_name(plan, denied.side)} refuses {denied.operation} for any key ({str(denied).rstrip('.')})"
    return MigrationFault(f"{words}; give the credentials that right again (s3:ListBucket as well)")


def _describe_failure(plan: Plan, failure: ObjectError) -> MigrationFault:
    minutes = PAUSE_AFTER // timedelta(minutes=1)
    words = f"at {_name(plan, failure.side)} {failure.operation} has failed for every object for {minutes} minutes"
    return MigrationFault(f"{words} ({str(failure).rstrip('.')}); ask whoever runs that server")


def refuse_listing(plan: Plan, side: SideName, denied: AccessDenied, prefix: str = "") -> MigrationFault:
    """Return the error of a bucket that may not be listed."""
    below = f" below {prefix!r}" if prefix else ""
    words = f"the {side} bucket {plan.side(side).bucket} cannot be listed{below}: {str(denied).rstrip('.')}"
    return MigrationFault(f"{words}; give the {side} credentials s3:ListBucket there")


def _name(plan: Plan, name: SideName | None) -> str:
    if name is None:
        return "one of the buckets"
    side = plan.legacy if name == "legacy" else plan.production
    return f"the {name} bucket {side.bucket}"
