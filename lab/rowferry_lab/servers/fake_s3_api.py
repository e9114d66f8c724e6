"""The operations of the fake S3 server: each takes a request and returns a response. No I/O here."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from rowferry_lab.servers.fake_s3_http import COPIES, OPERATIONS, XML, Request, refuse, respond
from rowferry_lab.servers.fake_s3_store import NOTHING, Bucket, S3Error, Store, StoredObject, Upload, make_object

PAGE_KEYS = 1000
"""Keys in one page of a listing, and the most that may be asked for."""
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
LOGIN_PAGE = b"<html><body>please log in: <a href='ETag'>ETag</a></body></html>"
WRITES = ("PutObject", "CopyObject", "CompleteMultipartUpload")


@dataclass(frozen=True, slots=True)
class Deviations:
    """What the server does otherwise than Amazon S3; the defaults are Amazon's own behaviour."""

    if_none_match: frozenset[str] = frozenset(WRITES)
    """The operations that honour If-None-Match."""
    source_if_match: bool = True
    """Whether x-amz-copy-source-if-match is honoured."""
    tagging_count: bool = True
    """Whether HEAD and GET return x-amz-tagging-count."""
    keeps_tags: frozenset[str] = frozenset({"PutObject", "CopyObject", "CreateMultipartUpload"})
    """The operations that keep the tags of the object."""
    completion_etag: bool = True
    """Whether the result of CompleteMultipartUpload has an ETag."""
    head_length: bool = True
    """Whether the response to HeadObject has a Content-Length."""
    login_page_for: str | None = None
    """The operation that does nothing and returns 200 with a web page."""


class FakeApi:
    """Responds to requests from a store."""

    def __init__(self, store: Store, deviations: Deviations) -> None:
        """Take both."""
        self.store = store
        self.deviations = deviations
        self._handlers: dict[str, Callable[[Request], bytes]] = {
            name: getattr(self, f"_{name}") for name in (*OPERATIONS.values(), *COPIES.values())
        }

    def answer(self, request: Request) -> bytes:
        """Return the response, errors of S3 included."""
        handler = self._handlers.get(request.operation)
        if handler is None:
            return refuse(request, 501, "NotImplemented")
        if request.operation == self.deviations.login_page_for:
            page = b"" if request.method == "HEAD" else LOGIN_PAGE
            return respond(200, page, b"content-type: text/html\r\n", length=len(LOGIN_PAGE))
        try:
            return handler(request)
        except S3Error as error:
            return refuse(request, error.status, error.code)

    # Buckets

    def _CreateBucket(self, request: Request) -> bytes:
        self.store.buckets.setdefault(request.bucket, Bucket())
        return respond(200)

    def _HeadBucket(self, request: Request) -> bytes:
        self.store.bucket(request.bucket)
        return respond(200)

    def _DeleteBucket(self, request: Request) -> bytes:
        if self.store.bucket(request.bucket).objects:
            raise S3Error(409, "BucketNotEmpty")
        del self.store.buckets[request.bucket]
        return respond(204)

    def _ListObjectsV2(self, request: Request) -> bytes:
        """Return a page; its continuation token is the last key of the page before."""
        query = request.query
        most = min(int(query.get("max-keys", PAGE_KEYS)), PAGE_KEYS)
        after = query.get("continuation-token", query.get("start-after", ""))
        encode = quote if query.get("encoding-type") == "url" else escape
        found: list[str] = []
        last, more = "", False
        for key, stored in self.store.bucket(request.bucket).walk(query.get("prefix", ""), after):
            if len(found) == most:
                more = True
                break
            found.append(
                f"<Contents><Key>{encode(key)}</Key><ETag>&quot;{stored.etag}&quot;</ETag><Size>{stored.size}</Size>"
                f"<LastModified>{_timestamp(stored.written)}</LastModified>"
                "<StorageClass>STANDARD</StorageClass></Contents>"
            )
            last = key
        found.append(f"<KeyCount>{len(found)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>")
        if more:
            found.append(f"<NextContinuationToken>{escape(last)}</NextContinuationToken>")
        if encode is quote:
            found.append("<EncodingType>url</EncodingType>")
        return _result("ListBucketResult", "".join(found))

    def _ListMultipartUploads(self, request: Request) -> bytes:
        """Return all uploads in one page."""
        self.store.bucket(request.bucket)
        now = _timestamp(time.time())
        return _result(
            "ListMultipartUploadsResult",
            "<IsTruncated>false</IsTruncated>"
            + "".join(
                f"<Upload><Key>{escape(upload.key)}</Key><UploadId>{upload_id}</UploadId><Initiated>{now}</Initiated></Upload>"
                for upload_id, upload in self.store.uploads.items()
                if upload.bucket == request.bucket and upload.key.startswith(request.query.get("prefix", ""))
            ),
        )

    def _DeleteObjects(self, request: Request) -> bytes:
        bucket = self.store.bucket(request.bucket)
        for element in _parse(request.body).iter():
            if element.tag.rpartition("}")[2] == "Key":
                bucket.remove(element.text or "")
        return _result("DeleteResult", "")

    # Objects

    def _HeadObject(self, request: Request) -> bytes:
        stored = self.store.read(request.bucket, request.key)
        self._check_if_match(request, stored)
        length = stored.size if self.deviations.head_length else -1
        return respond(200, b"", self._describe(stored), length=length)

    def _GetObject(self, request: Request) -> bytes:
        stored = self.store.read(request.bucket, request.key)
        self._check_if_match(request, stored)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.header(b"range") or "")
        if asked is None or not stored.size:
            return respond(200, stored.body, self._describe(stored))
        first, last = _bound_range(asked[1], asked[2], stored.size)
        span = f"content-range: bytes {first}-{last}/{stored.size}\r\n".encode()
        return respond(206, stored.body[first : last + 1], self._describe(stored) + span)

    def _PutObject(self, request: Request) -> bytes:
        if "aws-chunked" in (request.header(b"content-encoding") or ""):
            raise S3Error(501, "NotImplemented")
        stored = self.store.make_object(request.body, request.describe(), self._read_tagging(request))
        self._write(request, stored)
        return respond(200, headers=b'etag: "%s"\r\n' % stored.etag.encode())

    def _CopyObject(self, request: Request) -> bytes:
        source = self._read_source(request)
        headers, tags = source.headers, source.tags
        if request.header(b"x-amz-metadata-directive") == "REPLACE":
            headers = request.describe()
        if request.header(b"x-amz-tagging-directive") == "REPLACE":
            tags = self._read_tagging(request)
        stored = source.copy(headers, tags if "CopyObject" in self.deviations.keeps_tags else NOTHING)
        self._write(request, stored)
        return _copy_result("CopyObjectResult", stored)

    def _DeleteObject(self, request: Request) -> bytes:
        self.store.bucket(request.bucket).remove(request.key)
        return respond(204)

    # Tags

    def _GetObjectTagging(self, request: Request) -> bytes:
        tags = self.store.read(request.bucket, request.key).tags
        found = (f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>" for name, value in tags.items())
        return _result("Tagging", f"<TagSet>{''.join(found)}</TagSet>")

    def _PutObjectTagging(self, request: Request) -> bytes:
        words = [
            element.text or ""
            for element in _parse(request.body).iter()
            if element.tag.rpartition("}")[2] in {"Key", "Value"}
        ]
        self._tag(request, dict(zip(words[::2], words[1::2], strict=True)))
        return respond(200)

    def _DeleteObjectTagging(self, request: Request) -> bytes:
        self._tag(request, {})
        return respond(204)

    def _tag(self, request: Request, tags: Mapping[str, str]) -> None:
        stored = self.store.read(request.bucket, request.key)
        self.store.bucket(request.bucket).put(request.key, stored.copy(stored.headers, tags))

    # Multipart uploads

    def _CreateMultipartUpload(self, request: Request) -> bytes:
        self.store.bucket(request.bucket)
        tags = self._read_tagging(request)
        upload_id = self.store.begin_upload(Upload(request.bucket, request.key, request.describe(), tags))
        return _result("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")

    def _UploadPart(self, request: Request) -> bytes:
        part = make_object(request.body)
        if request.digest:
            part = StoredObject(b"", *request.digest, NOTHING, NOTHING, part.written)
        self._add_part(request, part)
        return respond(200, headers=b'etag: "%s"\r\n' % part.etag.encode())

    def _UploadPartCopy(self, request: Request) -> bytes:
        source = self._read_source(request)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.header(b"x-amz-copy-source-range") or "")
        body = source.body[int(asked[1]) : int(asked[2]) + 1] if asked else source.body
        part = make_object(body)
        self._add_part(request, part)
        return _copy_result("CopyPartResult", part)

    def _add_part(self, request: Request, part: StoredObject) -> None:
        self.store.upload(request.query["uploadId"]).parts[int(request.query["partNumber"])] = part

    def _CompleteMultipartUpload(self, request: Request) -> bytes:
        upload_id = request.query["uploadId"]
        named = (element for element in _parse(request.body).iter() if element.tag.rpartition("}")[2] == "PartNumber")
        stored = self.store.upload(upload_id).assemble([int(element.text or 0) for element in named])
        self._write(request, stored)
        del self.store.uploads[upload_id]
        etag = f"&quot;{stored.etag}&quot;" if self.deviations.completion_etag else ""
        return _result("CompleteMultipartUploadResult", f"<ETag>{etag}</ETag>")

    def _AbortMultipartUpload(self, request: Request) -> bytes:
        self.store.upload(request.query["uploadId"])
        del self.store.uploads[request.query["uploadId"]]
        return respond(204)

    # What several operations share

    def _write(self, request: Request, stored: StoredObject) -> None:
        """Write an object. Raises S3Error when If-None-Match is honoured and there is one already."""
        bucket = self.store.bucket(request.bucket)
        honoured = request.operation in self.deviations.if_none_match
        if honoured and request.header(b"if-none-match") == "*" and bucket.find(request.key) is not None:
            raise S3Error(412, "PreconditionFailed")
        bucket.put(request.key, stored)

    def _read_tagging(self, request: Request) -> dict[str, str]:
        if request.operation not in self.deviations.keeps_tags:
            return {}
        return dict(parse_qsl(request.header(b"x-amz-tagging") or "", keep_blank_values=True))

    def _read_source(self, request: Request) -> StoredObject:
        source = unquote(request.header(b"x-amz-copy-source") or "").removeprefix("/")
        stored = self.store.read(*source.split("/", 1))
        wanted = request.etag_of(b"x-amz-copy-source-if-match") if self.deviations.source_if_match else None
        if wanted not in {None, stored.etag}:
            raise S3Error(412, "PreconditionFailed")
        return stored

    def _check_if_match(self, request: Request, stored: StoredObject) -> None:
        if request.etag_of(b"if-match") not in {None, stored.etag}:
            raise S3Error(412, "PreconditionFailed")

    def _describe(self, stored: StoredObject) -> bytes:
        if stored.tags and self.deviations.tagging_count:
            return stored.description + b"x-amz-tagging-count: %d\r\n" % len(stored.tags)
        return stored.description


def _bound_range(first: str, last: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte, both included. Raises S3Error when the object is shorter."""
    if int(first) >= size:
        raise S3Error(416, "InvalidRange")
    return int(first), min(int(last), size - 1) if last else size - 1


def _timestamp(seconds: float) -> str:
    return f"{_to_the_second(int(seconds))}.{int(seconds % 1 * 1000):03}Z"


@lru_cache
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _copy_result(name: str, stored: StoredObject) -> bytes:
    when = _timestamp(stored.written)
    return _result(name, f"<ETag>&quot;{stored.etag}&quot;</ETag><LastModified>{when}</LastModified>")


def _result(name: str, content: str) -> bytes:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{name} xmlns="{NAMESPACE}">{content}</{name}>'
    return respond(200, text.encode(), XML)


def _parse(body: bytes) -> Any:
    try:
        return ElementTree.fromstring(body)  # noqa: S314 - a client of our own sent it
    except ElementTree.ParseError:
        raise S3Error(400, "MalformedXML") from None
