"""What the copies of a batch tell of a side: nothing is held against an object that the server has done to all."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from random import sample
from types import MappingProxyType

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
)
from rowferry.plan import Plan, SideName
from rowferry.s3.cures import find_cure, refusal_of
from rowferry_worker.batch.context import BatchContext
from rowferry_worker.batch.sides.asking import ask, find_lost_bucket, look_up_objects
from rowferry_worker.batch.sides.judgement import Answer, Answers, is_down, may_not_read, may_not_write
from rowferry_worker.batch.sides.questions import LISTING, READING, Suspicion, ask_of_nothing, ask_of_object
from rowferry_worker.batch.sides.samples import MOST, Keys, sample_objects
from rowferry_worker.migration import MigrationContext
from rowferry_worker.scheduling.copy_run import WHOLE_SIDE, ObjectResult
from rowferry_worker.scheduling.evidence import Operation, is_suspect, name_operation

PAUSE_AFTER = timedelta(minutes=30)
"""For so long nothing but one operation fails, for every object: then a person must look, and the migration pauses."""
_GONE = "HTTP 404"
"""The code of a 404 without S3's error, as HEAD has it, and a web server that knows nothing of the bucket."""

Results = Mapping[str, ObjectResult]
"""How the copy of each object ended, by its key."""
NO_TARGETS: Mapping[str, str] = MappingProxyType({})


def judge_sides(context: BatchContext, by_key: Results, targets: Mapping[str, str] = NO_TARGETS) -> Results:
    """Return the results with what was the server's as ServerUnavailable, which costs no attempt.

    `targets`: the production keys, where those of `by_key` are legacy keys.

    Raises MigrationFault where a person must mend a side: what was copied already is found to be there the next time.
    """
    migration = context.migration
    tried = [result for result in by_key.values() if not isinstance(result, NotStarted | Cancelled)]
    if fault := next((result for result in tried if isinstance(result, WHOLE_SIDE)), None):
        raise _describe_fault(migration.plan, fault)
    waiting = [(key, targets.get(key, key)) for key, result in by_key.items() if isinstance(result, NotStarted)]
    at_fault = _find_faults(context, [result for result in tried if isinstance(result, ObjectError)], waiting)
    missing = [result for result in tried if isinstance(result, ObjectNotFound)]
    is_doubtful = len(missing) == len(tried) or any(result.code == _GONE for result in missing)
    if missing and is_doubtful and (lost := find_lost_bucket(migration)):
        raise _describe_fault(migration.plan, lost)
    return _excuse_all(at_fault, _look_for_missing(migration, by_key))


def _find_faults(
    context: BatchContext, errors: Sequence[ObjectError], waiting: Sequence[Keys]
) -> dict[Operation, ObjectError]:
    """Return an error of each operation that fails for every object. Raises MigrationFault where a person must act."""
    evidence, plan, failing = context.migration.evidence, context.migration.plan, dict[Operation, ObjectError]()
    for suspicion, error in {_suspect(error): error for error in errors if _is_doubtful(error)}.items():
        operation = suspicion.operation
        if not _is_at_fault(context, suspicion, waiting):
            evidence.note_well(operation)
        elif operation[1] == LISTING and suspicion.is_denied:
            raise refuse_listing(plan, operation[0] or "legacy", error)
        elif suspicion.is_denied:
            raise _describe_revocation(plan, error)
        elif evidence.failing_for(operation) > PAUSE_AFTER:
            raise _describe_failure(plan, error)
        else:
            failing[operation] = error
    return failing


def _is_doubtful(error: ObjectError) -> bool:
    return is_suspect(error) or isinstance(error, AccessDenied)


def _suspect(error: ObjectError) -> Suspicion:
    return Suspicion(name_operation(error), isinstance(error, AccessDenied))


def _is_at_fault(context: BatchContext, suspicion: Suspicion, waiting: Sequence[Keys]) -> bool:
    """Ask where the operation should succeed, and return whether the side is at fault."""
    in_a_row = context.migration.evidence.is_in_a_row(suspicion.operation)
    answers = _ask_elsewhere(context, suspicion, waiting)
    if not suspicion.is_denied:
        return is_down(answers, in_a_row=in_a_row)
    if suspicion.is_read:
        return may_not_read(answers, in_a_row=in_a_row)
    if may_not_write(answers):
        return True
    return suspicion.reads_as_well and may_not_read(_ask_elsewhere(context, READING, waiting), in_a_row=in_a_row)


def _ask_elsewhere(context: BatchContext, suspicion: Suspicion, waiting: Sequence[Keys]) -> Answers:
    """Return how the operation goes for no object, for those known, and where that decides nothing, for others."""
    migration, evidence = context.migration, context.migration.evidence
    nothing = ask_of_nothing(migration.plan, suspicion)
    known = ask_of_object(migration.plan, suspicion, evidence.readable, evidence.written)
    first, *more = ask(migration, [nothing] if known is None else [nothing, known])
    answers = Answers(first, more[0] if more else None)
    if suspicion.is_read and answers.known is Answer.OTHER:
        evidence.is_recorded = False  # that object is gone: the next success is kept in its place
    if not answers.are_open(is_write=suspicion.is_denied and not suspicion.is_read):
        return answers
    others = [*sample(waiting, min(len(waiting), MOST)), *sample_objects(context)]
    asked = {keys[0]: ask_of_object(migration.plan, suspicion, *keys) for keys in others}
    questions = {key: question for key, question in asked.items() if question is not None}
    found = dict(zip(questions, ask(migration, questions.values()), strict=True))
    if suspicion.is_read and suspicion.operation[0] == "legacy":
        evidence.readable = next((key for key, answer in found.items() if answer is Answer.WORKS), evidence.readable)
    return replace(answers, others=tuple(found.values()))


def _look_for_missing(migration: MigrationContext, by_key: Results) -> Results:
    """Return the results, with ServerUnavailable for what is there, and was not for a while.

    A 404 that is none of S3's may come of whatever answered then in the server's place.
    """
    doubtful = {key: result for key, result in by_key.items() if isinstance(result, ObjectNotFound)}
    doubtful = {key: result for key, result in doubtful.items() if result.code == _GONE and result.side == "legacy"}
    if not doubtful:
        return by_key
    found = look_up_objects(migration, doubtful)
    there = {
        key: _unavailable(result)
        for (key, result), again in zip(doubtful.items(), found, strict=True)
        if not isinstance(again, ObjectNotFound)
    }
    return {**by_key, **there}


def _excuse_all(failing: Mapping[Operation, ObjectError], by_key: Results) -> Results:
    """Return the results, with ServerUnavailable for what fails whatever the object, and what was not begun for it."""
    if not failing:
        return by_key
    seen = next(iter(failing.values()))
    return {key: _excuse(result, failing, seen) for key, result in by_key.items()}


def _excuse(result: ObjectResult, failing: Container[Operation], seen: ObjectError) -> ObjectResult:
    if isinstance(result, NotStarted):
        return _unavailable(seen)
    if isinstance(result, ObjectError) and is_suspect(result) and name_operation(result) in failing:
        return _unavailable(result)
    return result


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
    return MigrationFault(f"{words} ({str(failure).rstrip('.')}); ask whoever runs that server")


def refuse_listing(plan: Plan, side: SideName, denied: ObjectError, prefix: str = "") -> MigrationFault:
    """Return the error of a bucket that may not be listed."""
    below = f" below {prefix!r}" if prefix else ""
    words = f"the {side} bucket {plan.side(side).bucket} cannot be listed{below}: {str(denied).rstrip('.')}"
    return MigrationFault(f"{words}; give the {side} credentials s3:ListBucket there")


def _name(plan: Plan, name: SideName | None) -> str:
    if name is None:
        return "one of the buckets"
    side = plan.legacy if name == "legacy" else plan.production
    return f"the {name} bucket {side.bucket}"
