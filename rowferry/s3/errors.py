"""Which error an S3 server's code or its status stands for, and its remedy. No I/O."""

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

_RENEW = "renew the {name} credentials: the profile, or all three of ROWFERRY_{side}_*"
_CORRECT = "set ROWFERRY_{side}_ACCESS_KEY_ID and ROWFERRY_{side}_SECRET_ACCESS_KEY, or the profile, to valid ones"
_SIGNATURE = "correct ROWFERRY_{side}_SECRET_ACCESS_KEY, or the profile: the secret key is wrong"
_CLOCK = "correct the clock of this host, by NTP for instance"
_REGION = "correct `region` of [{name}] in the plan"
_PLACE = "correct `endpoint_url` or `region` of [{name}] in the plan"
_SPACE = "make room there, or raise the quota"
_ACLS = "leave `acl` out of [production], or let the bucket take ACLs (Object Ownership)"
_ACCOUNT = "ask the provider about the account"

REMEDY_OF_CODE: dict[str, str] = {
    **dict.fromkeys(["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"], _RENEW),
    **dict.fromkeys(["InvalidAccessKeyId", "InvalidToken", "InvalidClientTokenId"], _CORRECT),
    "XAdminUserNotFound": _CORRECT,
    "SignatureDoesNotMatch": _SIGNATURE,
    "AuthorizationHeaderMalformed": _REGION,
    **dict.fromkeys(["PermanentRedirect", "IncorrectEndpoint"], _PLACE),
    **dict.fromkeys(["RequestTimeTooSkewed", "RequestExpired"], _CLOCK),
    **dict.fromkeys(["QuotaExceeded", "InsufficientStorage", "InsufficientCapacity"], _SPACE),
    **dict.fromkeys(["XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"], _SPACE),
    **dict.fromkeys(["AccountProblem", "AllAccessDisabled", "NotSignedUp", "InvalidSecurity"], _ACCOUNT),
    **dict.fromkeys(["UserSuspended", "InvalidPayer"], _ACCOUNT),
    "AccessControlListNotSupported": _ACLS,
}
"""Codes of a SideFault, and what to do: they hold for every object of the side until that is done."""

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
    **dict.fromkeys(["InternalError", "NoSuchUpload"], ServerFault),
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

_REMEDY_OF_STATUS = {
    407: "correct the user name and the password in HTTP_PROXY or HTTPS_PROXY",
    507: _SPACE,
}


def classify(status: int, code: str, message: str) -> ObjectError:
    """Return the error that a status and S3's error code stand for; the code may be empty."""
    message = "" if message == code else message  # some servers repeat it
    if remedy := REMEDY_OF_CODE.get(code) or _REMEDY_OF_STATUS.get(status):
        return SideFault(code or f"HTTP {status}", message, remedy)
    if code and (known := _CLASS_OF_CODE.get(code)):
        return known(code, message)
    name = code or f"HTTP {status}"
    if status in _ONLY_WHEN_NAMELESS and code:
        return ObjectRejected(name, message)
    if status in _CLASS_OF_STATUS:
        return _CLASS_OF_STATUS[status](name, message)
    if 300 <= status < 500:
        return ObjectRejected(name, message)
    return ServerFault(name, message)
