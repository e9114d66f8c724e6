"""All errors of rowferry; whether one is worth a retry, and counts as an attempt, is an attribute of its class."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Literal, Self


class RowferryError(Exception):
    """The base of all errors that rowferry raises on purpose."""

    retryable = False
    """Whether the same work may succeed later without help."""

    costs_attempt = True
    """Whether it counts towards `max_attempts`; waiting for a busy or absent server does not."""


class UsageError(RowferryError):
    """One sentence: what is wrong and what to do. The command line prints it and exits with 2."""


class PlanError(UsageError):
    """The plan is missing, unreadable or invalid."""


class QueueUnusable(PlanError):
    """One queue of a migration cannot be worked on here, as with a plan of another version; its others can."""


class QueueFault(RowferryError):
    """The work of a queue did not keep its promises; the message says which. A person must fix its package."""


class MigrationFault(UsageError):
    """A side or a table of a migration is at fault, not the entries of a batch; the message says what to do.

    The batch is released, which does not count as an attempt. After a few of them the migration is paused, with the
    message as the reason.
    """

    costs_attempt = False

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        """`may_pass`: the fault may end without help, as when credentials cannot be renewed for a while."""
        super().__init__(message)
        self.may_pass = may_pass


class WorkLeft(RowferryError):
    """`worker --until-empty` stops although there is work left that it does not wait for; one sentence for each."""


class DatabaseUnavailable(RowferryError):
    """PostgreSQL refused or dropped a connection, or did not answer."""

    retryable = True
    costs_attempt = False


class SessionEnded(DatabaseUnavailable):
    """A session was ended while it waited for S3, by an administrator, a script or a timeout: not by its batch."""


class PoolExhausted(DatabaseUnavailable):
    """PgBouncer had no server connection left."""


class DatabaseBusy(RowferryError):
    """A deadlock, a lock timeout or a cancelled statement."""

    retryable = True


class VerdictRefused(RowferryError):
    """PostgreSQL refused to record the verdict on a batch."""


class RowRefused(RowferryError):
    """PostgreSQL refused to update one row (a constraint, a trigger, a value too long)."""


class RowBusy(RowferryError):
    """Another session holds the row's lock; a later attempt tries again."""

    retryable = True


RESPONSE_TOO_LONG = "ResponseTooLong"
"""The code of the ObjectRejected for a response that is longer than its limit."""


class ObjectError(RowferryError):
    """An S3 request failed; `code` is the server's error code, or our own where no server gave one."""

    where = ""
    """The refused operation and its side, for example "HeadObject legacy"; empty where no server refused."""

    retry_after: timedelta | None = None
    """How long the server asks clients to wait (Retry-After)."""

    status = 0
    """The HTTP status; 0 where no response came."""

    headers: Mapping[str, str] = MappingProxyType({})
    """Those of the response, names in lower case."""

    def __init__(self, code: str, message: str) -> None:
        """Keep the server's code and message."""
        super().__init__(f"{code}: {message}" if message else code)
        self.code = code
        self.message = message
        self.side: Literal["legacy", "production"] | None = None
        """The side and operation that failed; None and empty where that does not matter."""
        self.operation = ""

    def __reduce__(self) -> tuple[type[Self], tuple[str, ...]]:
        """Let another process return it."""
        return type(self), (self.code, self.message)

    @property
    def summary(self) -> str:
        """The code and the message, without what to do."""
        return f"{self.code}: {self.message}" if self.message else self.code

    def copy(self) -> Self:
        """Return an equal error, for each further request that fails for the same reason."""
        copied = type(self)(self.code, self.message)
        copied.__dict__.update(self.__dict__)
        return copied


class ObjectNotFound(ObjectError):
    """The key names no object (404 NoSuchKey)."""


class BucketNotFound(ObjectError):
    """The bucket does not exist (404 NoSuchBucket)."""


class AccessDenied(ObjectError):
    """The credentials are wrong, expired or not allowed to do this (401, 403)."""


class SideFault(ObjectError):
    """A whole side is at fault, not one object: its credentials, this host's clock, its quota.

    No entry fails for it: the batch is released, and after a few of them the migration is paused with the reason.
    """

    costs_attempt = False

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        """Keep what to do: `{side}` and `{SIDE}` in it stand for the side, as in a plan and in variables."""
        super().__init__(code, message)
        self._remedy = remedy

    def __reduce__(self) -> tuple[type[Self], tuple[str, ...]]:
        """Let another process return it."""
        return type(self), (self.code, self.message, self.remedy)

    def __str__(self) -> str:
        """Return the error and what to do about it."""
        joint = "; " if self.message else ": "
        return f"{self.summary.rstrip('. ')}{joint}{self.remedy}" if self._remedy else self.summary

    @property
    def remedy(self) -> str:
        """What to do about it; empty where the message says that."""
        name = self.side or "side's"
        return self._remedy.format(side=name, SIDE=self.side.upper() if self.side else "*")


class CredentialsUnavailable(AccessDenied):
    """Temporary credentials have expired and could not be renewed, so no request can be signed."""

    retryable = True


class ServerNotTrusted(SideFault):
    """The certificate of an https endpoint has an untrusted issuer, is for another host, or has expired."""


class PreconditionFailed(ObjectError):
    """A condition header did not hold (412), or a conditional write lost a race (409)."""


class ObjectConflict(ObjectError):
    """The object contradicts what it is to be: its entry is a conflict, which a person decides."""


class ObjectRejected(ObjectError):
    """The server will never accept this request as it is (any other 4xx)."""


class ObjectDamaged(ObjectError):
    """A digest or a length differs from what was sent."""

    retryable = True


class ListingUnusable(ObjectError):
    """A server's listing does not name each key once, in the order of their bytes: no range can be cut from it."""


class ServerFault(ObjectError):
    """The server failed (500, InternalError, or an unreadable response)."""

    retryable = True


class TimedOut(ObjectError):
    """No response within the deadline of the request."""

    retryable = True


class Throttled(ObjectError):
    """The server asked to slow down (503 SlowDown, 429)."""

    retryable = True
    costs_attempt = False


class Unreachable(ObjectError):
    """No connection to the server could be made or kept."""

    retryable = True
    costs_attempt = False


class CutOff(Unreachable):
    """The server has fallen silent: it answers neither the requests in flight nor a new connection."""


class ServerUnavailable(ObjectError):
    """Nothing succeeds at the server, whatever it answers: a page of a proxy or of a login, or failures alone."""

    retryable = True
    costs_attempt = False


class NotStarted(ObjectError):
    """The batch ended before the copy of the object started; no request was sent for it."""

    retryable = True
    costs_attempt = False


class NotFinished(NotStarted):
    """The time budget of the batch ended while a large object was under way; the next attempt goes on with it."""


class Awaited(ObjectError):
    """Other batches are at work on the object; the batch looks again once they have ended."""

    retryable = True
    costs_attempt = False


class NotRecorded(ObjectError):
    """PostgreSQL did not record what an S3 server has confirmed; the next attempt does it again."""

    retryable = True
    costs_attempt = False


class Cancelled(ObjectError):
    """The worker cancelled the request because it was told to stop."""

    retryable = True
    costs_attempt = False
