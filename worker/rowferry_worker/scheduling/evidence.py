"""Does anything succeed there? What the ends of copies tell of a server, beside what they tell of an object."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, CredentialsUnavailable, ObjectError, ObjectRejected, ServerFault
from rowferry.plan import SideName
from rowferry.s3.errors import UPLOAD_LOST
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.scheduling.copy_run import ObjectResult

ENOUGH = 3
"""So many different objects that fail alike, with no success between them, are no coincidence."""

WELL_FOR = timedelta(minutes=1)
"""How long an operation that was found to work elsewhere ends no batch early: it is asked about at each end anyway."""

READS = frozenset({"HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl"})

_NO_S3_SERVER = frozenset({"UnreadableResponse", "NoETag", "NoS3Server", "NoContentLength", "Recoded"})
"""Codes of our own for a response that no S3 server gives."""

Operation = tuple[SideName | None, str]
"""A side and an operation, as an error names them."""


def is_suspect(result: ObjectResult) -> bool:
    """Return whether a result may be the server's own, whatever the object: a failure, or no answer of an S3 server.

    A refusal without S3's code, for example, is a page of something before the server.
    """
    if isinstance(result, ServerFault):
        return result.code in _NO_S3_SERVER or (result.status > 0 and result.code not in UPLOAD_LOST)
    return isinstance(result, ObjectRejected) and result.status > 0 and result.code == f"HTTP {result.status}"


def name_operation(error: ObjectError) -> Operation:
    """Return the side and the operation that an error came of."""
    return error.side, error.operation


@dataclass(slots=True)
class _Streak:
    """Failures of one operation since it last succeeded."""

    keys: set[str] = field(default_factory=set[str])
    """Of the objects that have failed, up to ENOUGH of them."""
    since: float = 0.0

    @property
    def is_evidence(self) -> bool:
        """Whether that is no coincidence."""
        return len(self.keys) >= ENOUGH

    def add(self, key: str, now: float) -> None:
        self.since = self.since if self.keys else now
        if not self.is_evidence:
            self.keys.add(key)


class Evidence:
    """What the copies of one migration in this process tell of its servers. Event-loop thread, but for questions."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        readable: str | None = None,
        written: str | None = None,
    ) -> None:
        """`clock` tells seconds; `readable`, `written`: the keys for which others have succeeded before."""
        self._clock = clock
        self._faults: dict[Operation, _Streak] = defaultdict(_Streak)
        self._denials: dict[Operation, _Streak] = defaultdict(_Streak)
        self._well_until: dict[Operation, float] = {}
        self.readable = readable
        """The key of a legacy object that was read lately, by this process or another; None: none has been."""
        self.written = written
        """The production key that was written lately."""
        self.is_recorded = written is not None
        """Whether other workers know of these keys."""

    def note(self, key: str, result: ObjectResult, *, is_first: bool, target: str | None = None) -> bool:
        """Take in how the copy of an object ended; return whether that seems to be the server's fault.

        `is_first`: no attempt at the object has counted yet. One that has failed before, while others succeeded, tells
        nothing of the server. `target`: the production key, if `key` is the legacy key.
        """
        if isinstance(result, CopyResult):
            self._note_success(key, target, result)
            return False
        operation = name_operation(result)
        if is_suspect(result):
            streak = self._faults[operation]
            if is_first:
                streak.add(key, self._clock())
            return streak.is_evidence and self._clock() > self._well_until.get(operation, 0.0)
        if isinstance(result, AccessDenied) and not isinstance(result, CredentialsUnavailable) and is_first:
            self._denials[operation].add(key, self._clock())
        return False

    def note_well(self, operation: Operation) -> None:
        """Note that an operation works for other keys: what fails for a while now is held to be the objects' own."""
        self._faults.pop(operation, None)
        self._denials.pop(operation, None)
        self._well_until[operation] = self._clock() + WELL_FOR.total_seconds()

    def _note_success(self, key: str, target: str | None, result: CopyResult) -> None:
        has_written = result.outcome is Outcome.MIGRATED
        if has_written:
            self.readable, self.written = key, target or self.written
        if not self._faults and not self._denials:
            return
        if has_written:
            self._faults.clear()
            self._denials.clear()
            return
        for streaks in (self._faults, self._denials):
            for operation in [known for known in streaks if known[1] in READS]:
                del streaks[operation]

    def is_in_a_row(self, operation: Operation) -> bool:
        """Return whether an operation failed, or was denied, for several objects, and succeeded for none between."""
        return any(operation in each and each[operation].is_evidence for each in (self._faults, self._denials))

    def failing_for(self, operation: Operation) -> timedelta:
        """Return for how long an operation has failed for every object; zero where that is not so."""
        streak = self._faults.get(operation)
        if streak is None or not streak.is_evidence:
            return timedelta(0)
        return timedelta(seconds=self._clock() - streak.since)
