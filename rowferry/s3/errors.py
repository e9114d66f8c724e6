"""Which error an S3 server's code, its status or an exception of botocore stands for, and its remedy. No I/O."""

# pyright: reportMissingTypeStubs=false
# botocore carries no types; what is used of it is narrowed at once.

from typing import Any, cast

from botocore import exceptions
from botocore.parsers import ResponseParserError

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    CredentialsUnavailable,
    ObjectDamaged,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    RowferryError,
    ServerFault,
    ServerNotTrusted,
    SideFault,
    Throttled,
    TimedOut,
    Unreachable,
    UsageError,
)
from rowferry.plan import Side

_RENEW = "renew these credentials"
_CORRECT = "correct these credentials: the key is unknown there, or was revoked"
_CLOCK = "correct the clock of this host"
_PLACE = "correct the region or the endpoint of this side in the plan"
_SPACE = "make room there, or raise the quota"
_ACLS = "leave `acl` out of [production], or let the bucket take ACLs (Object Ownership)"
_ACCOUNT = "ask the provider about the account"

REMEDY_OF_CODE: dict[str, str] = {
    **dict.fromkeys(["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"], _RENEW),
    **dict.fromkeys(["InvalidAccessKeyId", "InvalidToken", "InvalidClientTokenId"], _CORRECT),
    "XAdminUserNotFound": _CORRECT,
    "SignatureDoesNotMatch": "correct the secret key of these credentials",
    **dict.fromkeys(["AuthorizationHeaderMalformed", "PermanentRedirect", "IncorrectEndpoint"], _PLACE),
    **dict.fromkeys(["RequestTimeTooSkewed", "RequestExpired"], _CLOCK),
    **dict.fromkeys(["QuotaExceeded", "InsufficientStorage", "InsufficientCapacity"], _SPACE),
    **dict.fromkeys(["XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"], _SPACE),
    **dict.fromkeys(["AccountProblem", "AllAccessDisabled", "NotSignedUp", "InvalidSecurity"], _ACCOUNT),
    **dict.fromkeys(["UserSuspended", "InvalidPayer"], _ACCOUNT),
    "AccessControlListNotSupported": _ACLS,
}
"""Codes of a SideFault: they hold for every object of the side until the remedy is applied."""

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
        return SideFault(code or f"HTTP {status}", f"{message.rstrip('. ')}; {remedy}" if message else remedy)
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


BOTO_ERRORS = (exceptions.BotoCoreError, exceptions.ClientError, ResponseParserError)
"""All that `translate_boto_error` knows."""

_CLASS_OF_ERROR: tuple[tuple[type[Exception], type[ObjectError]], ...] = (
    (exceptions.ReadTimeoutError, TimedOut),
    (exceptions.HTTPClientError, Unreachable),
    (exceptions.ConnectionError, Unreachable),
    (ResponseParserError, ServerFault),
)
"""By class, first match wins; whatever is left was refused before it was sent."""

_ABOUT_TRUST = ("CERTIFICATE_VERIFY_FAILED", "doesn't match")
"""What an SSLError says that no later try will mend; a handshake that breaks off may go well the next time."""

_ABOUT_CREDENTIALS = (
    exceptions.CredentialRetrievalError,
    exceptions.MetadataRetrievalError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
)
"""What these say may come from a credential process or a token, so it is not repeated."""


def translate_boto_error(error: Exception, side: Side) -> RowferryError:
    """Return the rowferry error for one of BOTO_ERRORS that came of speaking to `side`."""
    if isinstance(error, exceptions.ClientError):
        return _translate_response(cast("dict[str, Any]", cast("Any", error).response))
    name, words = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, exceptions.ParamValidationError):
        return UsageError(f"{side.name}.bucket {side.bucket!r} or a key of it is not a name S3 allows ({words})")
    if isinstance(error, _ABOUT_CREDENTIALS):
        return CredentialsUnavailable(name, f"the credentials of the {side.name} side cannot be had")
    if isinstance(error, exceptions.SSLError) and any(sign in words for sign in _ABOUT_TRUST):
        remedy = "AWS_CA_BUNDLE can name the file of your own certificate authority"
        return ServerNotTrusted(name, f"the certificate of the server is not trusted ({words}); {remedy}")
    for boto_class, own_class in _CLASS_OF_ERROR:
        if isinstance(error, boto_class):
            return own_class(name, words)
    return ObjectRejected(name, words)


def _translate_response(response: dict[str, Any]) -> RowferryError:
    """Return the error of a response; that of HEAD has no code, and botocore puts the status in its place."""
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    error: dict[str, str] = response.get("Error", {})
    code = error.get("Code", "")
    return classify(status, "" if code.isdigit() else code, error.get("Message", ""))
