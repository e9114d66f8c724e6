"""A journey: the S3 requests that one object needs, one after the other, as a generator that knows nothing of I/O.

A journey yields requests and is sent their answers; `flight` drives many at once. Written this way, the decisions of
the copy read from top to bottom, cost no thread, and are tested without a server.
"""

from collections.abc import Generator

from msgspec import Struct

from rowferry.batch import Outcome
from rowferry.errors import ObjectNotFound
from rowferry.plan import SideName
from rowferry.s3_answer import Answer
from rowferry.s3_request import Request, head_object


class Copied(Struct, frozen=True, gc=False):
    """How a journey ended well: the production object stands (migrated, kept) or a different one does (conflict)."""

    outcome: Outcome
    size_bytes: int = 0
    """Bytes that were written, as far as they are known: a server-side copy does not tell."""


Journey = Generator[Request, Answer, Copied]


def ask(request: Request) -> Generator[Request, Answer, Answer]:
    """Return the answer to a request. Raises its error where it has one."""
    answer = yield request
    if answer.error is not None:
        raise answer.error
    return answer


def find(side: SideName, key: str) -> Generator[Request, Answer, Answer | None]:
    """Return the headers of an object, None where there is none."""
    try:
        return (yield from ask(head_object(side, key)))
    except ObjectNotFound:
        return None
