"""Whose fault it is that an operation fails, an object's or the side's: what it does elsewhere decides. No I/O."""

from dataclasses import dataclass
from enum import Enum

from rowferry.errors import AccessDenied, CredentialsUnavailable, ObjectError, ObjectNotFound, TimedOut, Unreachable
from rowferry.s3.operations import BOTH_SIDES
from rowferry_worker.scheduling.evidence import READS, Operation, is_suspect, name_operation


@dataclass(frozen=True, slots=True)
class Suspicion:
    """An operation of a side that failed, or that was denied."""

    operation: Operation
    is_denied: bool

    @property
    def is_read(self) -> bool:
        """Whether it reads an object, and nothing else."""
        return self.operation[1] in READS

    @property
    def reads_as_well(self) -> bool:
        """Whether it writes one side, and a refusal may be that of the legacy object."""
        return self.operation[1] in BOTH_SIDES


READING = Suspicion(("legacy", "HeadObject"), is_denied=True)
"""What a refused copy may come of, beside the right to write."""


def suspect(error: ObjectError) -> Suspicion | None:
    """Return what an error may tell of its side; None where it is an object's own."""
    is_denied = isinstance(error, AccessDenied)
    return Suspicion(name_operation(error), is_denied) if is_denied or is_suspect(error) else None


class Answer(Enum):
    """What came of an operation that was tried elsewhere."""

    WORKS = "works"
    DENIED = "denied"
    DOWN = "down"
    """As no S3 server answers, or not at all."""
    MISSING = "missing"
    OTHER = "other"
    """Another error of S3's: as with MISSING, the server is there, and says nothing of what was asked."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of one operation elsewhere."""

    nothing: Answer
    """About a key without an object."""
    known: Answer | None = None
    """About the keys for which it has succeeded before; None: none are known."""
    others: tuple[Answer, ...] = ()
    """About other entries of the migration, which are asked for where `are_open`."""

    @property
    def elsewhere(self) -> tuple[Answer, ...]:
        """Those about keys that name objects."""
        return self.others if self.known is None else (self.known, *self.others)

    def are_open(self, suspicion: Suspicion) -> bool:
        """Return whether other entries must be asked for."""
        if suspicion.is_denied and not suspicion.is_read:
            return self.nothing is Answer.DENIED and self.known is None
        return self.nothing is not Answer.DOWN and self.known in {None, Answer.MISSING, Answer.OTHER}


def read_answer(result: object) -> Answer:
    """Return what a response or an error says."""
    if isinstance(result, AccessDenied) and not isinstance(result, CredentialsUnavailable):
        return Answer.DENIED
    if not isinstance(result, ObjectError):
        return Answer.WORKS
    if is_suspect(result) or isinstance(result, Unreachable | TimedOut):
        return Answer.DOWN
    return Answer.MISSING if isinstance(result, ObjectNotFound) else Answer.OTHER


def is_of_side(suspicion: Suspicion, answers: Answers, *, in_a_row: bool) -> bool:
    """Return whether the side is at fault.

    `in_a_row`: it has met several objects, with no success between them; that counts where nothing else is known. A
    right to write is missing where no key gets past the refusal, a right to read where no object can be read: who may
    list a bucket is told that a key names no object, and may yet read none.
    """
    elsewhere = answers.elsewhere
    if suspicion.is_denied and not suspicion.is_read:
        return {answers.nothing, *elsewhere} == {Answer.DENIED}
    if answers.nothing is Answer.DOWN and not suspicion.is_denied:
        return True
    if Answer.WORKS in elsewhere:
        return False
    if suspicion.is_denied:
        return Answer.DENIED in {answers.nothing, answers.known} or in_a_row
    return Answer.DOWN in elsewhere or in_a_row
