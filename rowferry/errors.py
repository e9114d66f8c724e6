"""Every error rowferry raises on purpose; whether a try is worth repeating is a fact of the class."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Literal, Self


class RowferryError(Exception):
    """Something went wrong that rowferry knows by name."""

    retryable = False
    """Whether the same work may succeed later without anybody's help."""

    costs_attempt = True
    """Whether the failure counts towards `max_attempts`: waiting for a busy or absent server does not."""


class UsageError(RowferryError):
    """One sentence that says what is wrong and what to do; the command line prints it and exits with 2."""


class PlanError(UsageError):
    """The plan file is missing, unreadable, or says something that cannot be meant."""


class MigrationFault(UsageError):
    """A side or a table of a migration is at fault, not the entries of a batch; the words say what to do.

    The batch is released, which costs it nothing; after a few of them the migration is paused with these words.
    """

    costs_attempt = False

    def __init__(self, words: str, *, may_pass: bool = False) -> None:
        """`may_pass`: it may end without a person's help, as when credentials cannot be renewed just now."""
        super().__init__(words)
        self.may_pass = may_pass


class WorkLeft(RowferryError):
    """A worker that stops when its queues are empty has found work that it does not wait for; a sentence each."""


class DatabaseUnavailable(RowferryError):
    """PostgreSQL refused, dropped or never answered a connection."""

    retryable = True
    costs_attempt = False


class PoolExhausted(DatabaseUnavailable):
    """PgBouncer had no connection to the server left for us."""


class DatabaseBusy(RowferryError):
    """PostgreSQL could not do it just now: a deadlock, a lock that others hold, a cancelled statement."""

    retryable = True


class VerdictRefused(RowferryError):
    """PostgreSQL refused to record what a batch came to."""


class RowRefused(RowferryError):
    """PostgreSQL refused to update one row (a constraint, a trigger, a value too long)."""


class RowBusy(RowferryError):
    """Another session holds the row's lock; it is left for a later attempt."""

    retryable = True


ANSWER_TOO_LONG = "AnswerTooLong"
"""The code of the ObjectRejected that stands for an answer of more bytes than are taken."""


class ObjectError(RowferryError):
    """An S3 request failed; `code` is the server's own error code, or the name of what went wrong before it."""

    where = ""
    """The operation that a server refused and its side, "HeadObject legacy" for instance; empty where none did."""

    retry_after: timedelta | None = None
    """How long the server asks to be left alone, where it says so."""

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
        """Whose response it was, and to which operation; None and empty: that does not matter."""
        self.operation = ""

    def copy(self) -> Self:
        """Return the same error anew: one that is raised for several requests is one for each."""
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

    Nothing is held against entries: the batch is released, and after a few of them the migration is paused with the
    reason.
    """

    costs_attempt = False


class CredentialsUnavailable(AccessDenied):
    """Credentials that expire could not be renewed, so nothing can be signed until they can."""

    retryable = True


class ServerNotTrusted(SideFault):
    """The certificate of an https endpoint is signed by nobody we trust, is for another host, or has expired."""


class PreconditionFailed(ObjectError):
    """A condition header did not hold (412), or a conditional write lost a race (409)."""


class ObjectRejected(ObjectError):
    """The server will never accept this request as it is (any other 4xx)."""


class ObjectDamaged(ObjectError):
    """What arrived is not what was sent: a digest or a length differs."""

    retryable = True


class ServerFault(ObjectError):
    """The server failed (500, InternalError, or an answer nobody can read)."""

    retryable = True


class TimedOut(ObjectError):
    """The server did not answer within the deadline of the request."""

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
    """The server has fallen silent: it answers neither what is under way nor a new connection."""


class Withdrawn(ObjectError):
    """The object's turn did not come while its batch was in hand; it was not asked for at all."""

    retryable = True
    costs_attempt = False


class Cancelled(ObjectError):
    """This worker gave the request up because it was told to stop."""

    retryable = True
    costs_attempt = False
