"""What botocore raises, in rowferry's words: translated where boto3 is called, so that nobody else knows it."""

# pyright: reportMissingTypeStubs=false
# botocore carries no types; what is used of it is narrowed at once.

from typing import Any, cast

from botocore import exceptions
from botocore.parsers import ResponseParserError

from rowferry.errors import (
    CredentialsUnavailable,
    ObjectError,
    ObjectRejected,
    RowferryError,
    ServerFault,
    ServerNotTrusted,
    TimedOut,
    Unreachable,
    UsageError,
)
from rowferry.plan import Side
from rowferry.s3.error_codes import classify

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
        return _translate_answer(cast("dict[str, Any]", cast("Any", error).response))
    name, words = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, exceptions.ParamValidationError):
        return UsageError(f"{side.name}.bucket {side.bucket!r} or a key of it is not a name S3 allows ({words})")
    if isinstance(error, _ABOUT_CREDENTIALS):
        return CredentialsUnavailable(name, f"the credentials of the {side.name} side cannot be had")
    if isinstance(error, exceptions.SSLError) and any(sign in words for sign in _ABOUT_TRUST):
        remedy = "AWS_CA_BUNDLE can name the file of an authority of your own"
        return ServerNotTrusted(name, f"the certificate of the server is not trusted ({words}); {remedy}")
    for boto_class, own_class in _CLASS_OF_ERROR:
        if isinstance(error, boto_class):
            return own_class(name, words)
    return ObjectRejected(name, words)


def _translate_answer(response: dict[str, Any]) -> RowferryError:
    """Return the error of an HTTP answer; HEAD answers have no code, botocore puts the status in its place."""
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    error: dict[str, str] = response.get("Error", {})
    code = error.get("Code", "")
    return classify(status, "" if code.isdigit() else code, error.get("Message", ""))
