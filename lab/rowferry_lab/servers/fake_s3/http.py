"""Requests to the fake S3 server and its responses, as bytes."""

from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

XML = b"content-type: application/xml\r\n"
SUBRESOURCES = ("uploads", "uploadId", "tagging", "acl", "delete", "list-type", "versioning", "location", "lifecycle")
OPERATIONS = {
    ("PUT", "", False): "CreateBucket",
    ("HEAD", "", False): "HeadBucket",
    ("GET", "list-type", False): "ListObjectsV2",
    ("POST", "delete", False): "DeleteObjects",
    ("GET", "", True): "GetObject",
    ("HEAD", "", True): "HeadObject",
    ("PUT", "", True): "PutObject",
    ("DELETE", "", True): "DeleteObject",
    ("GET", "tagging", True): "GetObjectTagging",
    ("POST", "uploads", True): "CreateMultipartUpload",
    ("PUT", "uploadId", True): "UploadPart",
    ("POST", "uploadId", True): "CompleteMultipartUpload",
    ("DELETE", "uploadId", True): "AbortMultipartUpload",
}
"""By method, subresource, and whether the request names a key. A copy source makes CopyObject and UploadPartCopy."""
COPIES = {"PutObject": "CopyObject", "UploadPart": "UploadPartCopy"}
DESCRIBING = (
    *(b"content-type", b"cache-control", b"content-disposition", b"content-encoding", b"content-language", b"expires"),
    b"x-amz-meta-",
)
"""How the headers begin that describe an object. Written down apart from rowferry's own list: a fake must not learn
from what it tests."""
PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class Request:
    """An HTTP request, and what S3 calls it."""

    def __init__(self, head: bytes) -> None:
        """Take the head without its empty line. The body comes later, if there is one."""
        line, *lines = head.split(b"\r\n")
        self.method, self.target, _ = line.decode("latin-1").split(" ", 2)
        path, _, query = self.target.partition("?")
        bucket, _, key = path[1:].partition("/")
        self.bucket, self.key = unquote(bucket), unquote(key)
        self.query = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        """The parameters of the query, decoded."""
        split = (each.partition(b":") for each in lines)
        self.headers = {name.lower(): value.strip() for name, _, value in split}
        """By their names in lower case."""
        self.body = b""
        self.operation = self.name_operation()
        """What S3 calls the request; empty when the fake does not know it."""

    def name_operation(self) -> str:
        """Return what S3 calls the request, by its method, query and key as they are now."""
        subresource = next((name for name in SUBRESOURCES if name in self.query), "") if self.query else ""
        name = OPERATIONS.get((self.method, subresource, bool(self.key)), "")
        return COPIES[name] if name in COPIES and b"x-amz-copy-source" in self.headers else name

    def header(self, name: bytes) -> str | None:
        """Return the value of a header, given its name in lower case."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def describe(self) -> dict[str, str]:
        """Return the headers that describe an object."""
        found = ((name, value) for name, value in self.headers.items() if name.startswith(DESCRIBING))
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in found}

    @property
    def account(self) -> str:
        """The access key that signed the request; empty where it is not signed."""
        return (self.header(b"authorization") or "").partition("Credential=")[2].partition("/")[0]

    def read_length(self) -> int | None:
        """Return how many bytes follow the head; None where it does not state that as a number."""
        length = self.headers.get(b"content-length", b"0")
        return int(length) if length.isdigit() and b"transfer-encoding" not in self.headers else None


class Response(NamedTuple):
    """What is sent back."""

    status: int
    body: bytes | memoryview = b""
    headers: bytes = b""
    """Further lines, each with its end."""
    length: int | None = None
    """What is stated instead of the body's own length; -1: nothing."""

    def render(self) -> tuple[bytes, bytes | memoryview]:
        """Return the head, and the body as it is."""
        length = len(self.body) if self.length is None else self.length
        stated = b"" if length < 0 or self.status == HTTPStatus.NO_CONTENT else b"content-length: %d\r\n" % length
        line = b"HTTP/1.1 %d %s\r\ndate: %s\r\n" % (self.status, PHRASES[self.status], formatdate(usegmt=True).encode())
        return b"%s%s%s\r\n" % (line, stated, self.headers), self.body


def refuse(request: Request, status: int, code: str) -> Response:
    """Return an error of S3; a HEAD gets no body."""
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    return Response(status, b"" if request.method == "HEAD" else body, XML)
