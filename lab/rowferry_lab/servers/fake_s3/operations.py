"""What several operations of the fake S3 server share: reading sources, writing under a condition, results in XML."""

import base64
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree

from rowferry_lab.servers.fake_s3.http import XML, Request, refuse, respond
from rowferry_lab.servers.fake_s3.settings import Deviations
from rowferry_lab.servers.fake_s3.store import S3Error, Store, StoredObject, make_object

UNENCRYPTED = frozenset({"x-amz-storage-class"})
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class Operations:
    """What the operations work on."""

    def __init__(self, store: Store, deviations: Deviations) -> None:
        """Take both."""
        self.store = store
        self.deviations = deviations

    def _receive(self, request: Request, tags: Mapping[str, str]) -> StoredObject:
        """Return an object or a part made of the body. Raises S3Error when its Content-MD5 is wrong."""
        headers = request.describe() | self._read_storage(request)
        acl = self._read_acl(request)
        expected = self.store.expect(request.key)
        if request.md5 is None:
            stored = make_object(request.body, headers, tags, acl)
        else:
            whole = expected is not None and request.md5 == expected.etag
            body = expected.body if expected is not None and whole else b""
            stored = StoredObject(body, request.md5, request.size, headers, tags, time.time(), acl)
        promised = request.header(b"content-md5")
        is_checked = promised is not None and self.deviations.checks_md5
        if is_checked and promised != base64.b64encode(bytes.fromhex(stored.etag)).decode():
            raise S3Error(400, "BadDigest")
        return stored

    def refuse_early(self, request: Request) -> bytes | None:
        """Return the response to a write that is refused before its body is read."""
        if self.deviations.looks_early and self._is_forbidden(request):
            return refuse(request, 412, "PreconditionFailed")
        return None

    def _is_forbidden(self, request: Request) -> bool:
        """Return whether an object stands where none may."""
        honoured = request.operation in self.deviations.if_none_match
        forbids = honoured and request.header(b"if-none-match") == "*"
        return forbids and self.store.bucket(request.bucket).find(request.key) is not None

    def _write(self, request: Request, stored: StoredObject) -> None:
        """Write an object. Raises S3Error when a condition is honoured and does not hold."""
        bucket = self.store.bucket(request.bucket)
        existing = bucket.find(request.key)
        if not self.deviations.looks_early and self._is_forbidden(request):
            raise S3Error(412, "PreconditionFailed")
        if request.operation in self.deviations.if_match and request.etag_of(b"if-match") is not None:
            if existing is None:
                raise S3Error(404, "NoSuchKey")
            self._check_if_match(request, existing)
        bucket.put(request.key, stored)

    def _read_tagging(self, request: Request) -> dict[str, str]:
        if request.operation not in self.deviations.keeps_tags:
            return {}
        return dict(parse_qsl(request.header(b"x-amz-tagging") or "", keep_blank_values=True))

    def _read_acl(self, request: Request) -> str:
        """Return the canned ACL that an object gets."""
        if request.operation not in self.deviations.keeps_acl:
            return "private"
        return request.header(b"x-amz-acl") or "private"

    def _read_storage(self, request: Request) -> dict[str, str]:
        """Return the headers by which an object is kept."""
        found = request.read_storage()
        return {name: value for name, value in found.items() if self.deviations.encrypts or name in UNENCRYPTED}

    def _read_source(self, request: Request) -> StoredObject:
        source = unquote(request.header(b"x-amz-copy-source") or "").removeprefix("/")
        stored = self.store.read(*source.split("/", 1))
        wanted = request.etag_of(b"x-amz-copy-source-if-match") if self.deviations.source_if_match else None
        if wanted not in {None, stored.etag}:
            raise S3Error(412, "PreconditionFailed")
        return stored

    def _check_if_match(self, request: Request, stored: StoredObject) -> None:
        reads = request.method in {"GET", "HEAD"}
        if reads and not self.deviations.read_if_match:
            return
        if request.etag_of(b"if-match") not in {None, stored.etag}:
            raise S3Error(412, "PreconditionFailed")

    def _describe(self, stored: StoredObject) -> bytes:
        if stored.tags and self.deviations.tagging_count:
            return stored.description + b"x-amz-tagging-count: %d\r\n" % len(stored.tags)
        return stored.description


def timestamp(seconds: float) -> str:
    return f"{to_the_second(int(seconds))}.{int(seconds % 1 * 1000):03}Z"


@lru_cache
def to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def copy_result(name: str, stored: StoredObject) -> bytes:
    when = timestamp(stored.written)
    return result(name, f"<ETag>&quot;{stored.etag}&quot;</ETag><LastModified>{when}</LastModified>")


def result(name: str, content: str) -> bytes:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{name} xmlns="{NAMESPACE}">{content}</{name}>'
    return respond(200, text.encode(), XML)


def parse(body: bytes) -> Any:
    try:
        return ElementTree.fromstring(body)  # noqa: S314 - a client of our own sent it
    except ElementTree.ParseError:
        raise S3Error(400, "MalformedXML") from None
