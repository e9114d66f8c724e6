"""One S3 double whose operations differ in what they honour: a proxy before moto, which holds what is true."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, quote

from request_log import Seen, read_answer, read_request
from torture.bad_s3 import BadS3, Streams, error_answer, read_body, read_whole_answer, send

WRITING = ("PutObject", "CopyObject", "CompleteMultipartUpload")
LOGIN_PAGE = b"<html><body>please log in: <a href='ETag'>ETag</a></body></html>"
EMPTY_ETAG = re.compile(rb"(<ETag>).*?(</ETag>)")


@dataclass(frozen=True, slots=True)
class Habits:
    """What the server does otherwise than Amazon's; the defaults are Amazon's own."""

    honours: frozenset[str] = frozenset(WRITING)
    """The operations that heed If-None-Match."""
    heeds_pins: bool = True
    """Whether x-amz-copy-source-if-match is heeded."""
    announces_tags: bool = True
    """Whether HEAD and GET tell x-amz-tagging-count."""
    keeps_tags_of: frozenset[str] = frozenset({"PutObject", "CreateMultipartUpload"})
    """The operations whose x-amz-tagging is not dropped."""
    names_completed: bool = True
    """Whether the answer to CompleteMultipartUpload has an ETag."""
    tells_length: bool = True
    """Whether the answer to a HEAD has a Content-Length."""
    login_page_for: str | None = None
    """The operation that is not done, and answered with 200 and a page for people."""


class UnevenS3(BadS3):
    """The running proxy, without any fault by chance."""

    def __init__(self, endpoint_url: str, habits: Habits) -> None:
        super().__init__(endpoint_url, seed=0, rates={})
        self._habits = habits
        self.before: Callable[[Seen, str], object] = lambda _seen, _operation: None
        """Called with each request before the server sees it."""

    async def _relay_one(self, client: Streams, server: Streams) -> bool:
        head = await client[0].readuntil(b"\r\n\r\n")
        seen = read_request(head)
        body = await read_body(seen.headers, client[0])
        operation, habits = name_operation(seen), self._habits
        self.before(seen, operation)
        if operation == habits.login_page_for:
            length = len(LOGIN_PAGE)
            page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n".encode()
            return await send(client, page + LOGIN_PAGE)
        if await self._is_refused(seen, operation):
            return await send(client, error_answer(seen, 412, "PreconditionFailed"))
        dropped = ["if-none-match", "x-amz-copy-source-if-match"]
        if operation in {"PutObject", "CreateMultipartUpload"} - habits.keeps_tags_of:
            dropped.append("x-amz-tagging")
        server[1].write(without(head, *dropped) + body)
        head, body = await read_whole_answer(seen, server[0])
        kept = b"connection: close" not in head.lower()
        if not habits.announces_tags:
            head = without(head, "x-amz-tagging-count")
        if not habits.tells_length and operation == "HeadObject":
            head = without(head, "content-length")
        if not habits.names_completed and operation == "CompleteMultipartUpload":
            body = EMPTY_ETAG.sub(rb"\1\2", body)
            head = with_length(without(head, "etag"), body)
        return await send(client, head + body) and kept

    async def _is_refused(self, seen: Seen, operation: str) -> bool:
        """Return whether a condition that is heeded does not hold."""
        if "if-none-match" in seen.headers and operation in self._habits.honours:
            return await self._read_etag(seen, f"/{seen.bucket}/{quote(seen.key)}") is not None
        if (pin := seen.headers.get("x-amz-copy-source-if-match")) and self._habits.heeds_pins:
            source = seen.headers["x-amz-copy-source"]
            return await self._read_etag(seen, f"/{source.removeprefix('/')}") != pin.strip('"')
        return False

    async def _read_etag(self, seen: Seen, target: str) -> str | None:
        """Return the unquoted ETag of an object of the server behind, None where there is none; it is asked as the
        client that has sent the request, and checks no signature."""
        lines = [f"HEAD {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines.append(f"Authorization: {seen.headers['authorization']}")
        reader, writer = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode())
            status, headers = read_answer(await reader.readuntil(b"\r\n\r\n"))
        finally:
            writer.close()
        assert status in {200, 404}, status
        return headers["etag"].strip('"') if status == 200 else None


def name_operation(seen: Seen) -> str:
    """Return what S3 calls the operation that a request asks for; empty for those of no interest here."""
    query, copies = parse_qs(seen.query, keep_blank_values=True), "x-amz-copy-source" in seen.headers
    match seen.method, [name for name in ("uploads", "uploadId", "tagging") if name in query]:
        case "HEAD", []:
            return "HeadObject"
        case "PUT", []:
            return "CopyObject" if copies else "PutObject"
        case "PUT", ["uploadId"]:
            return "UploadPartCopy" if copies else "UploadPart"
        case "POST", ["uploads"]:
            return "CreateMultipartUpload"
        case "POST", ["uploadId"]:
            return "CompleteMultipartUpload"
        case _:
            return ""


def without(head: bytes, *names: str) -> bytes:
    """Return the head of a message without these headers."""
    lines = head.split(b"\r\n")
    return b"\r\n".join(line for line in lines if line.partition(b":")[0].lower().decode() not in names)


def with_length(head: bytes, body: bytes) -> bytes:
    """Return the head of an answer that tells the length of another body."""
    return re.sub(rb"(?i)(\r\ncontent-length: *)\d+", rb"\g<1>%d" % len(body), head)
