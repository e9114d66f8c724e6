"""Two buckets in memory that respond to the requests of a copy, as obliging or as contrary as a test wants them."""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

from rowferry.errors import RESPONSE_TOO_LONG, ObjectError, ObjectRejected
from rowferry.s3 import retry
from rowferry.s3.errors import classify
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response, read_tags
from rowferry_worker.objects.requests import ObjectRequests


@dataclass
class Stored:
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    etag: str = ""
    tags: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.etag = self.etag or md5(self.body)


T = TypeVar("T")
Result = Response | ObjectError
"""What a server sends; the error is raised by the client."""

WRITING = ("PutObject", "CopyObject", "CompleteMultipartUpload")
RGW = ("PutObject",)
"""What Ceph RGW 16 and gofakes3 honour."""


@dataclass
class FakeBuckets:
    """`honours`: the operations that heed If-None-Match; `interfere`: may respond in the server's stead."""

    honours: Collection[str] = ()
    legacy: dict[str, Stored] = field(default_factory=dict)
    production: dict[str, Stored] = field(default_factory=dict)
    interfere: Callable[[Request], Result | None] = lambda _: None
    seen: list[Request] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """The parts of each upload, by their numbers."""
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of the uploads."""
    too_large_bytes: int = 10**9
    """CopyObject refuses more than this, and whole GETs do, as our own client does."""
    announces: bool = True
    """Whether HEAD and GET tell how many tags an object has."""
    drops_tags: Collection[str] = ()
    """The operations that lose the tags they were to bring along."""
    heeds_pins: bool = True
    """Whether If-Match and x-amz-copy-source-if-match are heeded."""

    @property
    def operations(self) -> list[str]:
        return [f"{request.operation} {request.side}" for request in self.seen]

    @property
    def s3(self) -> ObjectRequests:
        return ObjectRequests(self.send)

    def run(self, copy: Coroutine[Any, Any, T]) -> T:
        """Run a copy to its end, without pauses, and return its result; raises what it raises."""
        with patch.object(retry, "REQUEST_BASE", timedelta(0)):
            return asyncio.run(copy)

    async def send(self, request: Request) -> Response:
        """Respond as a client does; every request gives way to other copies."""
        await asyncio.sleep(0)
        result = self.respond(request)
        if isinstance(result, ObjectError):
            result.side, result.operation = request.side, request.operation
            raise result
        return result

    def respond(self, request: Request) -> Result:
        self.seen.append(request)
        return self.interfere(request) or getattr(self, f"_{request.operation}")(request)

    def bucket(self, request: Request) -> dict[str, Stored]:
        return self.legacy if request.side == "legacy" else self.production

    def _HeadObject(self, request: Request) -> Result:
        return self.describe(request)

    def _GetObject(self, request: Request) -> Result:
        found = self.bucket(request).get(request.key)
        span, pin = header(request, "Range"), header(request, "If-Match")
        if found is None:
            return refuse(404, "NoSuchKey")
        if self.heeds_pins and pin is not None and pin.strip('"') != found.etag:
            return refuse(412, "PreconditionFailed")
        first, last = span.removeprefix("bytes=").split("-") if span else ("0", "")
        body = found.body[int(first) : int(last) + 1 if last else None]
        if len(body) > self.too_large_bytes:
            return ObjectRejected(RESPONSE_TOO_LONG, "as told")
        described = self.describe(request).headers
        if not span:
            return Response(200, described, body)
        told = f"bytes {first}-{int(first) + len(body) - 1}/{len(found.body)}"
        return Response(206, {**described, "content-length": str(len(body)), "content-range": told}, body)

    def describe(self, request: Request) -> Result:
        found = self.bucket(request).get(request.key)
        if found is None:
            return refuse(404, "NoSuchKey")
        count = {"x-amz-tagging-count": str(len(found.tags))} if found.tags and self.announces else {}
        return Response(200, {**describe(found).headers, **count})

    def _GetObjectTagging(self, request: Request) -> Result:
        found = self.bucket(request).get(request.key)
        if found is None:
            return refuse(404, "NoSuchKey")
        tags = "".join(
            f"<Tag><Key>{write_xml(name)}</Key><Value>{write_xml(value)}</Value></Tag>"
            for name, value in found.tags.items()
        )
        return Response(200, {}, f"<Tagging><TagSet>{tags}</TagSet></Tagging>".encode())

    def _PutObjectTagging(self, request: Request) -> Result:
        self.production[request.key].tags = dict(read_tags(request.body))
        return Response(200)

    def _CopyObject(self, request: Request) -> Result:
        source = unquote(header(request, "x-amz-copy-source") or "").split("/", 2)[2]
        found = self.legacy.get(source)
        if found is None:
            return refuse(404, "NoSuchKey")
        if len(found.body) > self.too_large_bytes:
            return refuse(400, "EntityTooLarge")
        written = self._write(request, Stored(found.body, found.headers, found.etag, dict(found.tags)))
        return written if isinstance(written, ObjectError) else result("CopyObjectResult", found.etag)

    def _PutObject(self, request: Request) -> Result:
        described = {name.lower(): value for name, value in request.headers if name.lower() != "if-none-match"}
        return self._write(request, Stored(request.body, described, tags=tags_of(request)))

    def _write(self, request: Request, stored: Stored) -> Result:
        if (
            request.operation in self.honours
            and header(request, "If-None-Match") == "*"
            and request.key in self.production
        ):
            return refuse(412, "PreconditionFailed")
        if request.operation in self.drops_tags:
            stored.tags = {}
        self.production[request.key] = stored
        return Response(200, {"etag": f'"{stored.etag}"'})

    def _CreateMultipartUpload(self, request: Request) -> Result:
        name, element = f"upload-{len(self.seen)}", "InitiateMultipartUploadResult"
        self.uploads[name] = {}
        self.tags[name] = {} if request.operation in self.drops_tags else tags_of(request)
        return Response(200, {}, f"<{element}><UploadId>{name}</UploadId></{element}>".encode())

    def _UploadPart(self, request: Request) -> Result:
        return Response(200, {"etag": f'"{self._take_part(request, request.body)}"'})

    def _UploadPartCopy(self, request: Request) -> Result:
        source = unquote(header(request, "x-amz-copy-source") or "").split("/", 2)[2]
        first, last = (header(request, "x-amz-copy-source-range") or "").removeprefix("bytes=").split("-")
        found, pin = self.legacy[source], header(request, "x-amz-copy-source-if-match") or ""
        if self.heeds_pins and pin.strip('"') != found.etag:
            return refuse(412, "PreconditionFailed")
        return result("CopyPartResult", self._take_part(request, found.body[int(first) : int(last) + 1]))

    def _take_part(self, request: Request, body: bytes) -> str:
        self.uploads[query(request, "uploadId")][int(query(request, "partNumber"))] = body
        return md5(body)

    def _CompleteMultipartUpload(self, request: Request) -> Result:
        sent = self.uploads.get(query(request, "uploadId"))
        if sent is None:
            return refuse(404, "NoSuchUpload")
        parts = [body for _, body in sorted(sent.items())]
        tags = self.tags[query(request, "uploadId")]
        stored = Stored(b"".join(parts), etag=composite(*parts), tags=dict(tags))
        written = self._write(request, stored)
        if isinstance(written, ObjectError):
            return written
        del self.uploads[query(request, "uploadId")]
        return result("CompleteMultipartUploadResult", stored.etag)

    def _AbortMultipartUpload(self, request: Request) -> Result:
        self.uploads.pop(query(request, "uploadId"), None)
        return Response(204)


def md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def composite(*parts: bytes) -> str:
    """Return the ETag of an object made of these parts."""
    return md5(b"".join(bytes.fromhex(md5(part)) for part in parts)) + f"-{len(parts)}"


def result(name: str, etag: str) -> Response:
    return Response(200, {}, f"<{name}><ETag>&quot;{etag}&quot;</ETag></{name}>".encode())


def header(request: Request, name: str) -> str | None:
    return next((value for found, value in request.headers if found.lower() == name.lower()), None)


def tags_of(request: Request) -> dict[str, str]:
    return dict(parse_qsl(header(request, "x-amz-tagging") or "", keep_blank_values=True))


def query(request: Request, name: str) -> str:
    return dict(request.query)[name]


def describe(stored: Stored) -> Response:
    return Response(200, {"etag": f'"{stored.etag}"', "content-length": str(len(stored.body)), **stored.headers})


def write_xml(text: str) -> str:
    """Return a text as every parser reads it again."""
    return escape(text, {"\r": "&#13;"})


def refuse(status: int, code: str) -> ObjectError:
    error = classify(status, code, "as told")
    error.status = status
    return error
