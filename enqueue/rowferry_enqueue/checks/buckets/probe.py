"""Probe objects in the production bucket: which properties a server keeps, and which conditions it honours."""

import gzip
import hashlib
import re
import secrets
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from urllib.parse import quote

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    SideFault,
)
from rowferry.http.pipe import Pipe
from rowferry.plan import ProductionSide, Side
from rowferry.s3 import operations
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Pairs, Request, digest_header
from rowferry.s3.properties import write_headers
from rowferry.s3.responses import Response, read_tags
from rowferry.s3.results import read_copied_etag, read_upload_id, read_written_etag
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.finding import Finding, note

PREFIX = "rowferry-check-"
"""Of the key of each probe object."""
NO_ETAG = "0" * 32
HEADERS = {
    "Content-Type": "text/x-rowferry",
    "Content-Encoding": "gzip",
    "Content-Language": "en",
    "Content-Disposition": 'attachment; filename="probe.txt"',
    "Cache-Control": "max-age=86400",
    "Expires": "Thu, 01 Jan 2099 00:00:00 GMT",
}
METADATA = {
    "x-amz-meta-rowferry": "probe",
    "x-amz-meta-with-hyphen": "hyphen",
    "x-amz-meta-with_underscore": "underscore",
}
TAGS = {"rowferry": "check", "with space": "a+b=c"}
TAGGING = {"x-amz-tagging": "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in TAGS.items())}

ENCRYPTED = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-customer-algorithm")
"""Headers that say why an ETag may be no MD5."""

_MD5 = re.compile("[0-9a-f]{32}")
_NOT_WRITTEN = (AccessDenied, BucketNotFound, ObjectRejected, PreconditionFailed, SideFault)
"""Errors after which nothing can have been written."""


class Probe:
    """Writes objects below one key of its own and remembers them; each method raises ObjectError."""

    def __init__(self, client: ObjectClient, side: ProductionSide) -> None:
        self.key = f"{PREFIX}{secrets.token_hex(8)}"
        self.body = gzip.compress(secrets.token_bytes(32))
        self.lost: dict[str, list[str]] = {}
        """The properties that did not come back, by the operation that wrote the object."""
        self.copy_keeps_tags: bool | None = None
        """Whether a copy of the probe has its tags; None: nobody can tell."""
        self.lacks_tags = False
        """Whether the server refuses tags, or knows no request for them; a missing right tells nothing of that."""
        self.has_false_md5 = False
        """Whether the ETag of the probe looks like the MD5 of its bytes, and is not."""
        self.conditions: dict[str, str] = {}
        """What an operation does about If-None-Match: "honoured", "ignored", or why it is refused."""
        self._client = client
        self._bucket = side.bucket
        self._of_plan = write_headers(side)
        self._demanded: Pairs = ()
        """What the plan says of objects, if the bucket takes nothing without it: encryption, an ACL, a class."""
        self._written: dict[str, None] = {}
        self._uploads: set[tuple[str, str]] = set()
        """Key and id of those that are not completed."""
        self.properties = {**HEADERS, **METADATA, **TAGGING}
        """What it is written with: less, where the server takes it only so."""
        self._copy_key = f"{self.key}-copy"

    @property
    def is_written(self) -> bool:
        """Return whether the first probe stands in the bucket."""
        return self.key in self._written

    def write(self) -> bool:
        """Write the probe with all properties, and return whether the same bytes come back."""
        self._put()
        read = self.ask(operations.get_object("production", self.key))
        if read.body != self.body:
            return False
        md5, says_why = hashlib.md5(self.body, usedforsecurity=False).hexdigest(), any(map(read.headers.get, ENCRYPTED))
        self.has_false_md5 = not says_why and _MD5.fullmatch(read.etag or "") is not None and read.etag != md5
        self._examine("PutObject", self.key, self.put(if_none_match=True))
        return True

    def write_again(self) -> None:
        """Write the probe, whatever stands there, and look at nothing."""
        if self.is_written:
            self.write_object(self.put())
        else:
            self._put()

    def put(self, properties: Pairs = (), *, if_none_match: bool = False) -> Request:
        """Return the request that writes the probe, as a worker would: with what the bucket demands, and a digest."""
        headers = [*properties, *self._demanded, digest_header(self.body)]
        return operations.put_object(self.key, self.body, headers=headers, if_none_match=if_none_match)

    def copy_from(self, side: Side, key: str) -> None:
        """Let the server copy a legacy object."""
        headers = [*([operations.REQUESTER_PAYS] if side.requester_pays else []), *self._demanded]
        copy = operations.copy_object(
            self._copy_key, source_bucket=side.bucket, source_key=key, if_none_match=False, headers=headers
        )
        read_copied_etag(self.write_object(copy))

    def copy_itself(self) -> str:
        """Let the server copy the probe, and return what it does about `x-amz-copy-source-if-match`."""
        source = {"source_bucket": self._bucket, "source_key": self.key}
        copy = partial(operations.copy_object, self._copy_key, **source, headers=self._demanded)
        read_copied_etag(self.write_object(copy(if_none_match=False)))
        lost = self._examine("CopyObject", self._copy_key, copy(if_none_match=True))
        if self.has_tags:
            self.copy_keeps_tags = "tags" not in lost
        return self._try(copy(if_none_match=False, source_etag=NO_ETAG))

    def write_parts(self, *, server_side: bool) -> None:
        """Write an object of one part, and then over it under a condition that does not hold."""
        key, body = f"{self.key}-parts", None if server_side else self.body
        begin = partial(self.begin_upload, key, [*self.properties.items(), *self._demanded], body)
        self.write_object(begin(if_none_match=False))
        self._examine("CompleteMultipartUpload", key, begin(if_none_match=True))

    def begin_upload(
        self, key: str, headers: Iterable[tuple[str, str]], body: bytes | None, *, if_none_match: bool
    ) -> Request:
        """Begin an upload of one part, and return the request that completes it.

        `body` None: the server copies the probe. What is not completed is aborted by `remove`.
        """
        upload_id = read_upload_id(self.ask(operations.create_multipart_upload(key, headers=headers)))
        self._uploads.add((key, upload_id))
        if body is None:
            copy = operations.upload_part_copy(
                key,
                source_bucket=self._bucket,
                source_key=self.key,
                source_etag=self.ask(operations.head_object("production", self.key)).etag or "",
                first_byte=0,
                last_byte=len(self.body) - 1,
                upload_id=upload_id,
                part_number=1,
            )
            etag = read_copied_etag(self.ask(copy))
        else:
            digest = [digest_header(body)]
            part = operations.upload_part(key, body, upload_id=upload_id, part_number=1, headers=digest)
            etag = read_written_etag(self.ask(part))
        return operations.complete_multipart_upload(
            key, upload_id=upload_id, parts=[(1, etag)], if_none_match=if_none_match
        )

    def announce(self, body: Pipe) -> None:
        """Begin to write an object whose body does not come. Raises what the server says to that.

        A server may keep what came: it is removed with the rest.
        """
        key = f"{self.key}-large"
        self._written[key] = None
        self.ask(operations.put_object(key, b"", headers=self._demanded, source=body, if_none_match=False))

    def remove(self) -> Iterator[Finding]:
        """Remove all that was written, or may have been; yield what cannot be removed."""
        for key, upload_id in self._uploads:
            if error := self._remove(operations.abort_multipart_upload(key, upload_id=upload_id)):
                yield note(f"an unfinished upload to {key!r} may be left ({error})", "abort it by hand")
        for key in self._written:
            if error := self._remove(_delete_object(key)):
                yield note(f"the probe object {key!r} cannot be removed again ({error})", "remove it by hand")
        self._written.clear()

    def _remove(self, request: Request) -> ObjectError | None:
        """Return why something is not removed; None where it is, or was not there."""
        try:
            self.ask(request)
        except ObjectError as error:
            return None if isinstance(error, ObjectNotFound) or error.code == "NoSuchUpload" else error
        return None

    def _put(self) -> None:
        """Write the probe; without its tags, or without all properties, where the server takes it only so.

        What the plan says of objects is left to probes of its own, unless the bucket takes none without it.
        """
        first: ObjectError | None = None
        for demanded in ((), self._of_plan) if self._of_plan else ((),):
            self._demanded = demanded
            for left_out, properties in (
                ("", self.properties),
                ("tags", {**HEADERS, **METADATA}),
                ("metadata, content headers and tags", dict[str, str]()),
            ):
                try:
                    read_written_etag(self.write_object(self.put(tuple(properties.items()))))
                except (AccessDenied, ObjectRejected) as error:
                    first = first or error
                    continue
                self.properties = properties
                self.lacks_tags = left_out == "tags" and not isinstance(first, AccessDenied)
                self.lost["PutObject"] = [f"{left_out} ({first})"] if left_out else []
                return
        if first is not None:
            raise first

    @property
    def has_tags(self) -> bool:
        """Return whether the probe was written with tags, which came back."""
        return TAGGING.keys() <= self.properties.keys() and not any("tags" in lost for lost in self.lost["PutObject"])

    def _compare(self, operation: str, key: str) -> list[str]:
        """Note the properties that an operation did not keep, and return them."""
        lost = find_lost(self.properties, self.ask(operations.head_object("production", key)).headers)
        if TAGGING.keys() <= self.properties.keys():
            try:
                if dict(read_tags(self.ask(operations.get_object_tagging("production", key)).body)) != TAGS:
                    lost.append("tags")
            except ObjectError as error:  # a server without tags may even answer with the object itself
                self.lacks_tags |= operation == "PutObject" and not isinstance(error, AccessDenied)
                lost.append(f"tags, as far as can be seen ({error})")
        self.lost.setdefault(operation, []).extend(lost)
        return lost

    def _examine(self, operation: str, key: str, again: Request) -> list[str]:
        """Note what an operation did not keep, and what it does about If-None-Match; return the former."""
        lost = self._compare(operation, key)
        self.conditions[operation] = self._try(again)
        return lost

    def write_object(self, request: Request) -> Response:
        """Send a request that writes an object, and remember that it may be there."""
        was_there = request.key in self._written
        self._written[request.key] = None
        try:
            response = self.ask(request)
        except _NOT_WRITTEN:
            if not was_there:
                del self._written[request.key]
            raise
        self._uploads.discard((request.key, dict(request.query).get("uploadId", "")))
        return response

    def _try(self, request: Request) -> str:
        """Return what a server does with a request whose condition does not hold."""
        try:
            self.write_object(request)
        except ObjectError as error:
            return "honoured" if isinstance(error, PreconditionFailed) else f"refused ({error.code})"
        return "ignored"

    def ask(self, request: Request) -> Response:
        """Send a request that writes no object."""
        return self._client.ask(request, tries=TRIES)


@contextmanager
def written_probe(client: ObjectClient, side: ProductionSide, left: list[Finding]) -> Generator[Probe]:
    """Yield a probe; remove at the end what it wrote, and put what cannot be removed in `left`."""
    probe = Probe(client, side)
    try:
        yield probe
    finally:
        left.extend(probe.remove())


def _delete_object(key: str) -> Request:
    """Return the request that removes a probe object; rowferry deletes nothing else."""
    if not key.startswith(PREFIX):
        raise ObjectRejected("NotAProbe", f"{key!r} was not written by this check")
    return Request("production", "DeleteObject", "DELETE", key, operations.encode_key(key))


def find_lost(written: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return the names of metadata and content headers, tags aside, that are missing or different in `found`."""
    return [
        name.removeprefix("x-amz-meta-") if name in METADATA else name
        for name, value in written.items()
        if name not in TAGGING and not _is_same(name, value, found.get(name.lower(), ""))
    ]


def _is_same(name: str, written: str, found: str) -> bool:
    if name == "Expires":
        try:
            return parsedate_to_datetime(found) == parsedate_to_datetime(written)
        except ValueError:
            return False
    return found == written or (name == "Content-Type" and found.startswith(f"{written};"))
