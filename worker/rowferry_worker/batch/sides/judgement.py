"""Whose fault it is that an operation fails, an object's or the side's: what it does elsewhere decides. No I/O."""

from dataclasses import dataclass
from enum import Enum

from rowferry.errors import AccessDenied, CredentialsUnavailable, ObjectError, TimedOut, Unreachable
from rowferry_worker.scheduling.evidence import is_suspect


class Answer(Enum):
    """What came of an operation that was tried elsewhere."""

    WORKS = "works"
    DENIED = "denied"
    DOWN = "down"
    """As no S3 server answers, or not at all."""
    OTHER = "other"
    """Another error of S3's: the server is there, and says nothing of what was asked."""


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

    def are_open(self, *, is_write: bool) -> bool:
        """Return whether other entries must be asked for; `is_write`: whether keys may be written is asked."""
        if is_write:
            return self.nothing is Answer.DENIED and self.known is None
        return self.nothing is not Answer.DOWN and self.known in {None, Answer.OTHER}


def read_answer(result: object) -> Answer:
    """Return what a response or an error says."""
    if isinstance(result, AccessDenied) and not isinstance(result, CredentialsUnavailable):
        return Answer.DENIED
    if not isinstance(result, ObjectError):
        return Answer.WORKS
    return Answer.DOWN if is_suspect(result) or isinstance(result, Unreachable | TimedOut) else Answer.OTHER


def is_down(answers: Answers, *, in_a_row: bool) -> bool:
    """Return whether a failure is the server's.

    `in_a_row`: it has met several objects, with no success between them; that counts where nothing else is known.
    """
    if answers.nothing is Answer.DOWN:
        return True
    if Answer.WORKS in answers.elsewhere:
        return False
    return Answer.DOWN in answers.elsewhere or in_a_row


def may_not_read(answers: Answers, *, in_a_row: bool) -> bool:
    """Return whether a right to read is missing for all objects.

    Who may list a bucket is told that a key names no object, and may yet read none: only an object shows the right.
    """
    if Answer.WORKS in answers.elsewhere:
        return False
    return Answer.DENIED in {answers.nothing, answers.known} or in_a_row


def may_not_write(answers: Answers) -> bool:
    """Return whether a right to write is missing for all keys: none of them gets past a refusal."""
    return {answers.nothing, *answers.elsewhere} == {Answer.DENIED}
