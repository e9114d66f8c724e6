"""What the copies of a batch tell of a side: nothing is held against an object that the server has done to all."""

from collections.abc import Mapping, Set
from datetime import timedelta
from types import MappingProxyType

from rowferry.errors import (
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    MigrationFault,
    NotStarted,
    ObjectError,
    ObjectNotFound,
    ServerUnavailable,
)
from rowferry.plan import Plan, SideName
from rowferry.s3.cures import cure_of, find_cure, refusal_of
from rowferry.s3.operations import head_bucket, head_object
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sides.asking import ask, ask_elsewhere
from rowferry_worker.batch.sides.judgement import READING, Answer, Suspicion, is_of_side, suspect
from rowferry_worker.batch.sides.questions import LISTING, Question
from rowferry_worker.migration import MigrationContext
from rowferry_worker.scheduling.copy_run import WHOLE_SIDE, ObjectResult
from rowferry_worker.scheduling.evidence import Operation, is_suspect, name_operation

PAUSE_AFTER = timedelta(minutes=30)
"""For so long nothing but one operation fails, for every object: then a person must look, and the migration pauses."""
_GONE = "HTTP 404"
"""The code of a 404 without S3's error, as HEAD has it, and a web server that knows nothing of the bucket."""

Results = Mapping[str, ObjectResult]
"""How the copy of each object ended, by its key."""
KeyMap = Mapping[str, str]
"""The keys of objects on one side, by those of results."""
SAME: KeyMap = MappingProxyType({})
"""They are the same."""


def judge_sides(context: BatchContext, by_key: Results, targets: KeyMap = SAME, sources: KeyMap = SAME) -> Results:
    """Return the results with what was the server's as ServerUnavailable, which costs no attempt.

    `targets`, `sources`: the production keys and the legacy keys, where those of `by_key` are others.

    Raises MigrationFault where a person must mend a side: what was copied already is found to be there the next time.
    """
    migration = context.migration
    tried = {key: result for key, result in by_key.items() if not isinstance(result, NotStarted | Cancelled)}
    if fault := next((result for result in tried.values() if isinstance(result, WHOLE_SIDE)), None):
        raise _describe_fault(migration.plan, fault)
    errors = [result for result in tried.values() if isinstance(result, ObjectError)]
    suspected = {suspicion: error for error in errors if (suspicion := suspect(error))}
    begun = {sources.get(key, key) for key in tried}
    unbegun = [key for key, result in by_key.items() if isinstance(result, NotStarted)]
    waiting = [(sources.get(k, k), targets.get(k, k)) for k in unbegun if sources.get(k, k) not in begun]
    failing = _find_failing(context, suspected, waiting) if suspected else {}
    missing = {key: result for key, result in tried.items() if isinstance(result, ObjectNotFound)}
    gone = {key: result for key, result in missing.items() if result.code == _GONE}
    if missing and (gone or len(missing) == len(tried)):
        _refuse_lost_bucket(migration)
    lost = {key: sources.get(key, key) for key, result in gone.items() if result.side == "legacy"}
    there = _find_again(migration, set(lost.values()))
    return {key: _excuse(result, failing, is_there=lost.get(key) in there) for key, result in by_key.items()}


def _find_failing(
    context: BatchContext, suspected: Mapping[Suspicion, ObjectError], waiting: list[tuple[str, str]]
) -> dict[Operation, ObjectError]:
    """Return an error of each operation that fails for every object. Raises MigrationFault where a person must act."""
    evidence, plan, failing = context.migration.evidence, context.migration.plan, dict[Operation, ObjectError]()
    reading = [READING] if any(each.is_denied and each.reads_as_well for each in suspected) else []
    answers = ask_elsewhere(context, [*dict.fromkeys([*suspected, *reading])], waiting)
    for suspicion, error in suspected.items():
        operation, is_denied = suspicion.operation, suspicion.is_denied
        asked = [suspicion, READING] if is_denied and suspicion.reads_as_well else [suspicion]
        in_a_row = evidence.is_in_a_row(operation)
        if not any(is_of_side(each, answers[each], in_a_row=in_a_row) for each in asked):
            evidence.note_well(operation)
        elif is_denied and operation[1] == LISTING:
            raise MigrationFault(describe_listing(plan, operation[0] or "legacy", str(error)))
        elif is_denied:
            raise _describe_revocation(plan, error)
        elif evidence.failing_for(operation) > PAUSE_AFTER:
            raise _describe_failure(plan, error)
        else:
            failing[operation] = error
    return failing


def _refuse_lost_bucket(migration: MigrationContext) -> None:
    """Raise MigrationFault where a bucket in use is not there: a HEAD does not tell that from a missing object."""
    questions: dict[SideName, Question | None] = {side: Question(head_bucket(side)) for side in migration.clients}
    for side, answer in ask(migration, questions).items():
        if answer is Answer.MISSING:
            lost = BucketNotFound("NoSuchBucket", f"there is no bucket {migration.plan.side(side).bucket!r}")
            lost.side = side
            raise _describe_fault(migration.plan, lost)


def _find_again(migration: MigrationContext, missing: Set[str]) -> set[str]:
    """Return the keys of legacy objects that are there now, or may be.

    A 404 that is none of S3's may come of whatever answered then in the server's place.
    """
    answers = ask(migration, {key: Question(head_object("legacy", key)) for key in missing})
    return {key for key, answer in answers.items() if answer is not Answer.MISSING}


def _excuse(result: ObjectResult, failing: Mapping[Operation, ObjectError], *, is_there: bool) -> ObjectResult:
    """Return ServerUnavailable for what fails whatever the object, was not begun for it, or is there after all."""
    if isinstance(result, NotStarted) and failing:
        return _unavailable(next(iter(failing.values())))
    if not isinstance(result, ObjectError):
        return result
    return _unavailable(result) if is_there or (is_suspect(result) and name_operation(result) in failing) else result


def _unavailable(error: ObjectError) -> ServerUnavailable:
    held = ServerUnavailable(error.code, error.message)
    held.side, held.operation, held.where = error.side, error.operation, error.where
    return held


def _describe_fault(plan: Plan, fault: ObjectError) -> MigrationFault:
    passes = isinstance(fault, CredentialsUnavailable)
    remedy = "; create the bucket again, or correct the plan" if isinstance(fault, BucketNotFound) else ""
    words = f"{_name(plan, fault.side)} cannot be used: {str(fault).rstrip('.')}{remedy}"
    return MigrationFault(words, may_pass=passes)


def _describe_revocation(plan: Plan, denied: ObjectError) -> MigrationFault:
    words = f"{_name(plan, denied.side)} refuses {denied.operation} for any key ({str(denied).rstrip('.')})"
    cure = find_cure(refusal_of(denied), plan.side(denied.side) if denied.side else None)
    remedy = "give the credentials that right again (s3:ListBucket as well)" if cure is None or cure.is_right else cure
    return MigrationFault(f"{words}; {remedy}")


def _describe_failure(plan: Plan, failure: ObjectError) -> MigrationFault:
    minutes = PAUSE_AFTER // timedelta(minutes=1)
    words = f"at {_name(plan, failure.side)} {failure.operation} has failed for every object for {minutes} minutes"
    cure = find_cure(refusal_of(failure), plan.side(failure.side) if failure.side else None)
    return MigrationFault(f"{words} ({str(failure).rstrip('.')}); {cure or 'ask whoever runs that server'}")


def describe_listing(plan: Plan, side: SideName, denied: str, prefix: str = "") -> str:
    """Return that a bucket may not be listed (below a prefix), and what to do; `denied`: what the server said."""
    below = f" below {prefix!r}" if prefix else ""
    words = f"the {side} bucket {plan.side(side).bucket} cannot be listed{below}: {denied.rstrip('.')}"
    return f"{words}; {cure_of('listing-denied', plan.side(side))}"


def _name(plan: Plan, side: SideName | None) -> str:
    return "one of the buckets" if side is None else f"the {side} bucket {plan.side(side).bucket}"
