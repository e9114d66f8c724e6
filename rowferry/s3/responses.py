"""An S3 server's response: its status, headers and XML, and the error that it stands for. No I/O."""

import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit
from xml.etree import ElementTree

from msgspec import Struct, field

from rowferry.errors import Cancelled, CutOff, ObjectError, ServerFault
from rowferry.http.stream import BodyStream
from rowferry.s3.cures import is_of_side
from rowferry.s3.errors import classify
from rowferry.s3.operations import BOTH_SIDES, Request

PAGE_BYTES, PAGE_CHARACTERS = 2048, 100
"""How much of a page is looked at, and how many characters of what it says are told."""
_TITLE = re.compile(r"<title>([^<]*)</title>", re.IGNORECASE)


class Response(Struct, frozen=True):
    """The response to one request."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in lower case."""
    body: bytes = b""
    stream: BodyStream | None = None
    """The body where it was asked for piece by piece; whoever sent the request closes it."""

    @property
    def body_bytes(self) -> int:
        """Return how many bytes the body has, streamed or not."""
        return len(self.body) if self.stream is None else self.stream.length

    @property
    def etag(self) -> str | None:
        """Return the ETag header without quotes; None when there is none. A copy's is in its body."""
        quoted = self.headers.get("etag")
        return quoted.strip('"') if quoted else None

    @property
    def content_length(self) -> int | None:
        """Return the size in bytes that the server named, for HEAD the object's; None if it named none."""
        value = self.headers.get("content-length", "")
        return int(value) if value.isascii() and value.isdigit() else None


def find_error(response: Response, *, may_hide_error: bool = False) -> ObjectError | None:
    """Return the error that a response stands for, with its status and headers; None for a success.

    `may_hide_error`: a 200 may carry `<Error>` instead of a result (CopyObject, UploadPartCopy and
    CompleteMultipartUpload answer early and fail late; Amazon S3 API Reference, "CopyObject"). A 202 says that the
    request was taken, not that anything was done.
    """
    succeeded = 200 <= response.status < 300 and response.status != 202
    if succeeded and not (may_hide_error and b"<Error" in response.body):
        return None
    error = _classify(response, succeeded=succeeded)
    error.status, error.headers = response.status, response.headers
    return error


def name_request(error: ObjectError, request: Request) -> ObjectError:
    """Return the error with the request that has met it; Cancelled and CutOff are of no one request."""
    error.side, error.operation = request.side, request.operation
    if not isinstance(error, (Cancelled, CutOff)):
        both = request.operation in BOTH_SIDES
        error.where = request.operation if both else f"{request.operation} {request.side}"
    return error


def _classify(response: Response, *, succeeded: bool) -> ObjectError:
    code, message = read_error(response.body)
    if succeeded:
        return classify(500, code or "UnreadableResponse", message)
    if response.status == 404 and response.body and not code:
        return ServerFault("UnreadableResponse", "404 with a body that is not S3's")
    if code and (request_id := response.headers.get("x-amz-request-id")) and not is_of_side(code):
        message = f"{message} (request {request_id[:40]})".lstrip()
    if 300 <= response.status < 400 and (place := read_endpoint(response)):
        message = f"{message.rstrip('. ')}; the server names the endpoint {place}".lstrip("; ")
    error = classify(response.status, code, message or read_page(response))
    error.retry_after = _read_retry_after(response.headers)
    return error


def _read_retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Return the seconds that Retry-After names; None without one, and for a date, which no S3 server sends."""
    seconds = headers.get("retry-after", "")
    return timedelta(seconds=int(seconds)) if seconds.isascii() and seconds.isdigit() and len(seconds) < 6 else None


def read_error(body: bytes) -> tuple[str, str]:
    """Return S3's error code and message from an `<Error>` body; empty strings when it is something else."""
    root = parse_xml(body)
    if root is None or name_of(root) != "Error":
        return "", ""
    return _child_text(root, "Code"), _child_text(root, "Message")


def read_page(response: Response) -> str:
    """Return what the page of a web server or proxy says in the place of S3's error; empty where it is no page.

    It may be compressed, or repeat the request with its signature.
    """
    page = response.body[:PAGE_BYTES].decode(errors="replace")
    found = _TITLE.search(page)
    words = " ".join((found[1] if found else page.partition("\n")[0]).split())
    is_told = words.isprintable() and "\ufffd" not in words and "authorization" not in words.lower()
    return "" if not is_told or words[:1] in "<{[" else words.removeprefix(f"{response.status} ")[:PAGE_CHARACTERS]


def read_endpoint(response: Response) -> str | None:
    """Return where a redirecting server says that the bucket is served: `<Endpoint>`, or the host of Location."""
    place = urlsplit(response.headers.get("location", ""))
    return read_text(response.body, "Endpoint") or (f"{place.scheme}://{place.netloc}" if place.netloc else None)


def read_text(body: bytes, name: str) -> str | None:
    """Return the text of the first element called `name` (UploadId, ETag, ...) of an XML response; None without one."""
    root = parse_xml(body)
    if root is None:
        return None
    return next((element.text or "" for element in root.iter() if name_of(element) == name), None)


def read_result(body: bytes, proof: str) -> dict[str, str]:
    """Return the text of each child of an XML body, by name; empty where none is called `proof`.

    The root may have any name but `html`: not every server takes S3's, and no SDK looks at it.
    """
    root = parse_xml(body)
    if root is None or name_of(root).lower() == "html":
        return {}
    found = {name_of(child): child.text or "" for child in root}
    return found if proof in found else {}


def read_tags(body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the (key, value) pairs of a GetObjectTagging response, in its order.

    Raises ServerFault when the body is no list of tags, lest an unreadable one pass for an object without tags.
    """
    root = parse_xml(body)
    if root is None or (name_of(root) != "Tagging" and root.find("{*}TagSet") is None):
        raise ServerFault("UnreadableResponse", "the server's list of tags is not S3's XML")
    tags = (element for element in root.iter() if name_of(element) == "Tag")
    return tuple((_child_text(tag, "Key"), _child_text(tag, "Value")) for tag in tags)


def parse_xml(body: bytes) -> ElementTree.Element | None:
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


def name_of(element: ElementTree.Element) -> str:
    """Return an element's name without its namespace: not every server sends AWS's."""
    return element.tag.rpartition("}")[2]


def _child_text(parent: ElementTree.Element, name: str) -> str:
    return next((child.text or "" for child in parent if name_of(child) == name), "")
