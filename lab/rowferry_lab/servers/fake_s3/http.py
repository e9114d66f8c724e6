"""Requests to the fake S3 server and its responses, as bytes."""

import re
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

XML = b"content-type: application/xml\r\n"
Response = bytes | tuple[bytes, memoryview]
"""A whole response; or its head, and a body that is sent from where it lies."""
SUBRESOURCES = ("uploads", "uploadId", "tagging", "acl", "delete", "list-type", "versioning", "location")
OPERATIONS = {
    ("PUT", "", False): "CreateBucket",
    ("HEAD", "", False): "HeadBucket",
    ("DELETE", "", False): "DeleteBucket",
    ("GET", "list-type", False): "ListObjectsV2",
    ("GET", "uploads", False): "ListMultipartUploads",
    ("POST", "delete", False): "DeleteObjects",
    ("GET", "", True): "GetObject",
    ("HEAD", "", True): "HeadObject",
    ("PUT", "", True): "PutObject",
    ("DELETE", "", True): "DeleteObject",
    ("GET", "tagging", True): "GetObjectTagging",
    ("PUT", "tagging", True): "PutObjectTagging",
    ("DELETE", "tagging", True): "DeleteObjectTagging",
    ("GET", "acl", True): "GetObjectAcl",
    ("PUT", "acl", True): "PutObjectAcl",
    ("POST", "uploads", True): "CreateMultipartUpload",
    ("GET", "uploadId", True): "ListParts",
    ("PUT", "uploadId", True): "UploadPart",
    ("POST", "uploadId", True): "CompleteMultipartUpload",
    ("DELETE", "uploadId", True): "AbortMultipartUpload",
}
"""By method, subresource, and whether the request names a key. A copy source makes CopyObject and UploadPartCopy."""
KEPT = re.compile(
    rb"\r\n(content-type|cache-control|content-disposition|content-encoding|content-language|expires|x-amz-meta-[^:\r]*)"
    rb":([^\r]*)",
    re.IGNORECASE,
)
"""What describes an object, besides its tags. Written down apart from rowferry's own list: a fake must not learn from
what it tests."""
STORED = re.compile(
    rb"\r\n(x-amz-storage-class|x-amz-server-side-encryption|x-amz-server-side-encryption-aws-kms-key-id):([^\r]*)",
    re.IGNORECASE,
)
"""What says how an object is kept: a copy never has it from its source."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+) *(?:\r\n|$)")
PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}
COPIES = {"PutObject": "CopyObject", "UploadPart": "UploadPartCopy"}


class Request:
    """An HTTP request. Headers are looked up in the raw bytes: a bench sends thousands of requests a second."""

    def __init__(self, head: bytes) -> None:
        """Take the head without its empty line. The body comes later, if there is one."""
        self._head = head
        self._lowered = head.lower()
        self.body = b""
        """Empty where only its MD5 was kept."""
        self.md5: str | None = None
        """Of the body, in hexadecimal, where it is known already."""
        self.size = 0
        """Bytes of the body."""
        line = head[: head.find(b"\r\n")] if b"\r\n" in head else head
        self.method, self.target, _ = line.decode().split(" ", 2)
        path, _, query = self.target.partition("?")
        bucket, _, key = path[1:].partition("/")
        self.bucket, self.key = (unquote(bucket), unquote(key)) if "%" in path else (bucket, key)
        self.query = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        """The parameters of the query, decoded."""
        self.operation = self._name_operation()
        """What S3 calls the request; empty when the fake does not know it."""

    def _name_operation(self) -> str:
        subresource = next((name for name in SUBRESOURCES if name in self.query), "") if self.query else ""
        name = OPERATIONS.get((self.method, subresource, bool(self.key)), "")
        return COPIES[name] if name in COPIES and self.header(b"x-amz-copy-source") is not None else name

    def header(self, name: bytes) -> str | None:
        """Return the value of a header, given its name in lower case."""
        start = self._lowered.find(b"\r\n%s:" % name)
        if start < 0:
            return None
        start += len(name) + 3
        end = self._head.find(b"\r\n", start)
        return self._head[start : end if end >= 0 else None].strip().decode("latin-1")

    @property
    def account(self) -> str:
        """The access key that signed the request; empty where it is not signed."""
        start = self._lowered.find(b"credential=")
        return self._head[start + 11 : self._head.find(b"/", start)].decode("latin-1") if start >= 0 else ""

    def read_length(self) -> int | None:
        """Return how many bytes follow the head; None where it does not state that as a number."""
        if b"\r\ntransfer-encoding:" in self._lowered:
            return None
        found = LENGTH.search(self._lowered)
        if found:
            return int(found[1])
        return None if b"\r\ncontent-length:" in self._lowered else 0

    @property
    def waits_for_continue(self) -> bool:
        """Whether the client sends the body only after a response 100."""
        return b"\r\nexpect: 100-continue" in self._lowered

    def describe(self) -> dict[str, str]:
        """Return the headers that describe an object, their names in lower case; not its tags."""
        return {name.lower().decode(): value.strip().decode("latin-1") for name, value in KEPT.findall(self._head)}

    def read_storage(self) -> dict[str, str]:
        """Return the headers that say how an object is kept, their names in lower case."""
        return {name.lower().decode(): value.strip().decode("latin-1") for name, value in STORED.findall(self._head)}

    def etag_of(self, name: bytes) -> str | None:
        """Return the unquoted ETag that a condition names."""
        value = self.header(name)
        return None if value is None else value.strip('"')


@lru_cache(maxsize=1)
def _date_line(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()


def respond(status: int, body: bytes = b"", headers: bytes = b"", *, length: int | None = None) -> bytes:
    """Return a whole response. `length` is stated where the body is not sent; -1 states none."""
    stated = len(body) if length is None else length
    line = b"HTTP/1.1 %d %s\r\n%s" % (status, PHRASES[status], _date_line(int(time.time())))
    if stated < 0 or status == HTTPStatus.NO_CONTENT:
        return b"%s%s\r\n%s" % (line, headers, body)
    return b"%scontent-length: %d\r\n%s\r\n%s" % (line, stated, headers, body)


def respond_with(status: int, body: memoryview, headers: bytes) -> Response:
    """Return a response whose body is sent without a copy."""
    return respond(status, headers=headers, length=len(body)), body


def refuse(request: Request, status: int, code: str, headers: bytes = b"") -> bytes:
    """Return an error of S3; a HEAD gets no body."""
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    return respond(status, b"" if request.method == "HEAD" else body, XML + headers)
