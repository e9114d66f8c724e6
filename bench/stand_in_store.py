"""What the S3 stand-in knows, and its answers as bytes: no I/O here."""

import hashlib
import itertools
import json
import random
import re
import time
from urllib.parse import parse_qs

PAGE_KEYS = 1000
"""How many keys a listing tells at once, as S3 does."""
STATUSES = {200: b"OK", 206: b"Partial Content", 404: b"Not Found", 412: b"Precondition Failed", 503: b"Slow Down"}
XML = b'<?xml version="1.0" encoding="UTF-8"?>'
COPY_RESULT = (
    XML + b'<CopyObjectResult><ETag>"%s"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></CopyObjectResult>'
)
LISTED = (
    "<Contents><Key>%s</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
    "<ETag>&quot;%s&quot;</ETag><Size>%d</Size><StorageClass>STANDARD</StorageClass></Contents>"
)
RANGE = re.compile(rb"\r\nrange: *bytes=(\d+)-(\d*)")


def key_of(number: int) -> str:
    """Return the key of a legacy object, counted from 1; they rise with the number."""
    return f"image/{number:09}.png"


def compose(status: int, body: bytes = b"", headers: bytes = b"", *, length: int | None = None) -> bytes:
    """Return a whole answer; `length` where it is not that of the body, as in answers to HEAD."""
    length = len(body) if length is None else length
    return b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, STATUSES[status], length, headers, body)


def refuse(status: int, code: bytes, *, with_body: bool) -> bytes:
    """Return S3's error of this code."""
    body = XML + b"<Error><Code>%s</Code><Message>stand-in</Message></Error>" % code if with_body else b""
    return compose(status, body, b"Content-Type: application/xml\r\n")


class Store:
    """Which production keys exist, the uploads under way, and how many requests there were."""

    def __init__(self, body: bytes, *, objects: int = 0, throttle: float = 0, seed: int = 1) -> None:
        """Take the body of every legacy object, how many a listing tells of, and the share of requests to refuse."""
        self.body = body
        self.objects = objects
        self.throttle = throttle
        self.etag = hashlib.md5(body, usedforsecurity=False).hexdigest().encode()
        self.requests = 0
        self._dice = random.Random(seed)
        self._keys: set[bytes] = set()
        self._uploads: dict[bytes, dict[int, bytes]] = {}
        self._upload_ids = itertools.count(1)
        copied = COPY_RESULT % self.etag
        described = (
            b'ETag: "%s"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: image/png\r\n' % self.etag
        )
        self._described = described + b"Accept-Ranges: bytes\r\n"
        self._copied_answer = compose(200, copied, b"Content-Type: application/xml\r\n")
        self._put_answer = compose(200, headers=b'ETag: "%s"\r\n' % self.etag)
        self._head_answer = compose(200, headers=self._described, length=len(body))
        self._get_answer = compose(200, body, self._described)

    def answer(self, method: bytes, path: bytes, head: bytes, digest: bytes) -> bytes:
        """Return the answer to a request whose head is given in lower case; `digest` is the MD5 of a part's body."""
        self.requests += 1
        if path == b"/_stats":
            stats = {"requests": self.requests, "cpu_seconds": time.process_time(), "objects": len(self._keys)}
            return compose(200, json.dumps(stats).encode(), b"Content-Type: application/json\r\n")
        if self.throttle and self._dice.random() < self.throttle:
            return refuse(503, b"SlowDown", with_body=method != b"HEAD")
        path, _, query = path.partition(b"?")
        if b"upload" in query:
            return self._answer_upload(method, path, query, digest)
        if method == b"PUT":
            return self._write(path, head)
        if b"list-type=2" in query:
            return self._list(path, query)
        return self._read(method, path, head)

    def _write(self, path: bytes, head: bytes) -> bytes:
        if path in self._keys and b"\r\nif-none-match:" in head:
            return refuse(412, b"PreconditionFailed", with_body=True)
        self._keys.add(path)
        return self._copied_answer if b"\r\nx-amz-copy-source:" in head else self._put_answer

    def _read(self, method: bytes, path: bytes, head: bytes) -> bytes:
        bucket, _, key = path[1:].partition(b"/")
        there = not key or (path in self._keys if bucket == b"production" else key.endswith(b".png"))
        if not there:
            return refuse(404, b"NoSuchKey", with_body=method != b"HEAD")
        if method == b"HEAD":
            return self._head_answer
        asked = RANGE.search(head)
        if asked is None or (asked[1] == b"0" and int(asked[2] or 0) + 1 >= len(self.body)):
            return self._get_answer
        first, last = int(asked[1]), min(int(asked[2] or len(self.body)), len(self.body) - 1)
        span = b"Content-Range: bytes %d-%d/%d\r\n" % (first, last, len(self.body))
        return compose(206, self.body[first : last + 1], self._described + span)

    def _list(self, path: bytes, query: bytes) -> bytes:
        """List legacy objects in the order of their keys, or production objects not at all: nobody needs that."""
        asked = parse_qs(query.decode())
        begin = int(asked.get("continuation-token", ["1"])[0])
        last = 0 if path.startswith(b"/production") else self.objects
        end = min(begin + PAGE_KEYS, last + 1)
        keys = "".join(LISTED % (key_of(number), self.etag.decode(), len(self.body)) for number in range(begin, end))
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end <= last else ""
        truncated = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        body = f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{truncated}{more}{keys}'
        return compose(200, XML + body.encode() + b"</ListBucketResult>", b"Content-Type: application/xml\r\n")

    def _answer_upload(self, method: bytes, path: bytes, query: bytes, digest: bytes) -> bytes:
        """Begin a multipart upload, take a part, complete or abort: with the ETags that S3 would give."""
        asked = parse_qs(query, keep_blank_values=True)
        if b"uploads" in asked:
            upload_id = b"upload-%d" % next(self._upload_ids)
            self._uploads[upload_id] = {}
            words = (
                b"<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>" % upload_id
            )
            return compose(200, XML + words, b"Content-Type: application/xml\r\n")
        upload_id = asked[b"uploadId"][0]
        if upload_id not in self._uploads:
            return refuse(404, b"NoSuchUpload", with_body=True)
        if method == b"PUT":
            self._uploads[upload_id][int(asked[b"partNumber"][0])] = digest
            return compose(200, headers=b'ETag: "%s"\r\n' % digest.hex().encode())
        parts = self._uploads.pop(upload_id)
        if method == b"DELETE":
            return compose(200)
        self._keys.add(path)
        digests = b"".join(parts[number] for number in sorted(parts))
        whole = hashlib.md5(digests, usedforsecurity=False).hexdigest().encode()
        words = b'<CompleteMultipartUploadResult><ETag>"%s-%d"</ETag></CompleteMultipartUploadResult>'
        return compose(200, XML + words % (whole, len(parts)), b"Content-Type: application/xml\r\n")
