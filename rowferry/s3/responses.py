"""What an S3 server's answer means: its status, headers and XML read into facts and error classes; no I/O here."""

from collections.abc import Mapping
from datetime import timedelta
from xml.etree import ElementTree

from msgspec import Struct, field

from rowferry.errors import ObjectError, ServerFault
from rowferry.s3.error_codes import REMEDY_OF_CODE, classify


class Answer(Struct, frozen=True):
    """What came of one request: an HTTP answer, or the error that stands for there being none."""

    status: int
    """HTTP status; 0 when no answer came."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in lower case."""
    body: bytes = b""
    error: ObjectError | None = None

    @property
    def etag(self) -> str | None:
        """Return the ETag header without quotes; None when there is none. That of a copy: `s3_result`."""
        quoted = self.headers.get("etag")
        return quoted.strip('"') if quoted else None

    @property
    def content_length(self) -> int | None:
        """Return the size in bytes that the server named, which for HEAD is the object's; None if it named none."""
        value = self.headers.get("content-length", "")
        return int(value) if value.isascii() and value.isdigit() else None


def read_answer(status: int, headers: Mapping[str, str], body: bytes, *, may_hide_error: bool = False) -> Answer:
    """Return the Answer for what a server sent; its error is set for any status but 2xx.

    `may_hide_error`: a 200 may carry `<Error>` instead of a result (CopyObject, UploadPartCopy and
    CompleteMultipartUpload answer early and fail late; Amazon S3 API Reference, "CopyObject").
    """
    succeeded = 200 <= status < 300
    if succeeded and not (may_hide_error and b"<Error" in body):
        return Answer(status, headers, body)
    code, message = read_error(body)
    if succeeded:
        return Answer(status, headers, body, classify(500, code or "UnreadableAnswer", message))
    if status == 404 and body and not code:
        return Answer(status, headers, body, ServerFault("UnreadableAnswer", "404 with a body that is not S3's"))
    if code and (request_id := headers.get("x-amz-request-id")) and code not in REMEDY_OF_CODE:
        message = f"{message} (request {request_id[:40]})".lstrip()
    error = classify(status, code, message)
    error.retry_after = _read_retry_after(headers)
    return Answer(status, headers, body, error)


def _read_retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Return the seconds that Retry-After names; None without one, and for a date, which no S3 server sends."""
    seconds = headers.get("retry-after", "")
    return timedelta(seconds=int(seconds)) if seconds.isascii() and seconds.isdigit() and len(seconds) < 6 else None


def read_error(body: bytes) -> tuple[str, str]:
    """Return S3's error code and message from an `<Error>` body; empty strings when it is something else."""
    root = _parse(body)
    if root is None or _local_name(root) != "Error":
        return "", ""
    return _child_text(root, "Code"), _child_text(root, "Message")


def read_text(body: bytes, name: str) -> str | None:
    """Return the text of the first element called `name` (UploadId, ETag, ...) of an XML answer; None without one."""
    root = _parse(body)
    if root is None:
        return None
    return next((element.text or "" for element in root.iter() if _local_name(element) == name), None)


def read_result(body: bytes, *names: str) -> dict[str, str]:
    """Return the text of each child of an XML answer whose root is called one of `names`; empty for any other body."""
    root = _parse(body)
    if root is None or _local_name(root) not in names:
        return {}
    return {_local_name(child): child.text or "" for child in root}


def read_tags(body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the (key, value) pairs of a GetObjectTagging answer, in its order.

    Raises ServerFault when the body is no tagging answer, lest an unreadable one pass for an object without tags.
    """
    root = _parse(body)
    if root is None or _local_name(root) != "Tagging":
        raise ServerFault("UnreadableAnswer", "the server's list of tags is not S3's XML")
    tags = (element for element in root.iter() if _local_name(element) == "Tag")
    return tuple((_child_text(tag, "Key"), _child_text(tag, "Value")) for tag in tags)


def _parse(body: bytes) -> ElementTree.Element | None:
    """Return the root of an XML body, None for anything else.

    S3's XML has no DTD and is UTF-8: a body with a DTD, or with NULs that could hide one in UTF-16, is not parsed
    at all, so entity bombs never reach expat (which limits them as well, from 2.4.1 on) and no further package is
    needed. Python's parser fetches nothing external. Slow copies begin with white space, which keeps them alive.
    """
    if not body or b"<!DOCTYPE" in body or b"\0" in body:
        return None
    try:
        return ElementTree.fromstring(body.lstrip())  # noqa: S314 - no DTD gets here, see above
    except (ElementTree.ParseError, ValueError, LookupError):  # the latter two for encodings that Python cannot read
        return None


def _local_name(element: ElementTree.Element) -> str:
    """Return an element's name without its namespace: not every server sends AWS's."""
    return element.tag.rpartition("}")[2]


def _child_text(parent: ElementTree.Element, name: str) -> str:
    return next((child.text or "" for child in parent if _local_name(child) == name), "")
