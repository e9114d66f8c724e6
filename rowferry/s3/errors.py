"""Which error an S3 server's code or its status stands for. No I/O."""

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectDamaged,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
    SideFault,
    Throttled,
    TimedOut,
)
from rowferry.s3.cures import Refusal, find_case, is_of_side

UPLOAD_LOST = frozenset({"NoSuchUpload", "InvalidPart"})
"""Codes by which a server says that it does not have an upload, or a part of it, any more: it begins anew."""

_CLASS_OF_CODE: dict[str, type[ObjectError]] = {
    "NoSuchBucket": BucketNotFound,
    **dict.fromkeys(["NoSuchKey", "NoSuchVersion", "NotFound"], ObjectNotFound),
    "AccessDenied": AccessDenied,
    **dict.fromkeys(["PreconditionFailed", "ConditionalRequestConflict", "OperationAborted"], PreconditionFailed),
    **dict.fromkeys(["InvalidObjectState", "EntityTooLarge", "MethodNotAllowed"], ObjectRejected),
    **dict.fromkeys(["InvalidArgument", "InvalidRequest", "KeyTooLongError", "NotImplemented"], ObjectRejected),
    **dict.fromkeys(["BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"], ObjectDamaged),
    "XAmzContentChecksumMismatch": ObjectDamaged,
    "RequestTimeout": TimedOut,
    **dict.fromkeys(["SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable"], Throttled),
    **dict.fromkeys(["Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"], Throttled),
    **dict.fromkeys(["RequestThrottled", "BandwidthLimitExceeded"], Throttled),
    # The next attempt starts a lost upload again; it would not if this were taken for a missing object.
    **dict.fromkeys(["InternalError", *UPLOAD_LOST], ServerFault),
}
"""Codes whose meaning their status does not tell, or which follow a 200."""

_CLASS_OF_STATUS: dict[int, type[ObjectError]] = {
    304: PreconditionFailed,
    401: AccessDenied,
    403: AccessDenied,
    404: ObjectNotFound,
    408: TimedOut,
    409: PreconditionFailed,
    412: PreconditionFailed,
    429: Throttled,
    501: ObjectRejected,
    503: Throttled,
    509: Throttled,
}

_ONLY_WHEN_NAMELESS = frozenset({404, 409})
"""Statuses that many different refusals share: without a known code they say what `_CLASS_OF_STATUS` says."""


def classify(status: int, code: str, message: str) -> ObjectError:
    """Return the error that a status and S3's error code stand for; the code may be empty."""
    message = "" if message == code else message  # some servers repeat it
    name = code or f"HTTP {status}"
    # Only a code of a side is looked up: a 404 or a 412 answers each copy where a server is not known yet.
    if is_of_side(name, status) and (case := find_case(Refusal(name, message, status))):
        return SideFault(name, message, case.cure)
    if code and (known := _CLASS_OF_CODE.get(code)):
        return known(code, message)
    if status in _ONLY_WHEN_NAMELESS and code:
        return ObjectRejected(name, message)
    if status in _CLASS_OF_STATUS:
        return _CLASS_OF_STATUS[status](name, message)
    if 300 <= status < 500:
        return ObjectRejected(name, message)
    return ServerFault(name, message)
