"""Tags and ACLs are subresources of an object, which not every server knows."""

from collections.abc import Awaitable
from typing import Literal, TypeVar

from rowferry.errors import RESPONSE_TOO_LONG, ObjectError, ObjectRejected

GivenBy = Literal["PutObject", "CopyObject", "CreateMultipartUpload"]
"""The operations that are to give an object its tags and its ACL."""

UNKNOWN = frozenset({"NotImplemented", "HTTP 501", "HTTP 405", "MethodNotAllowed"})
"""Error codes of a server that does not know a subresource."""

T = TypeVar("T")


def is_unknown(error: ObjectError) -> bool:
    """Return whether the error of GetObjectTagging or GetObjectAcl is that of a server without tags or ACLs.

    gofakes3 answers with the object itself, which may be longer than is taken.
    """
    return error.code in UNKNOWN or error.code in {"UnreadableResponse", RESPONSE_TOO_LONG}


async def fetch_known(fetched: Awaitable[T], otherwise: ObjectRejected) -> T:
    """Return what was fetched. Raises `otherwise` where the server does not know the subresource."""
    try:
        return await fetched
    except ObjectError as error:
        if not is_unknown(error):
            raise
        raise otherwise from error
