"""Answers the requests of one object's copy: reads are sent once and remembered, writes are never sent."""

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from email.utils import formatdate
from urllib.parse import parse_qsl

from msgspec.structs import replace

from rowferry.errors import ObjectError, ObjectNotFound, ObjectRejected, PreconditionFailed
from rowferry.http.stream import BodyStream
from rowferry.plan import SideName
from rowferry.s3.acl import write_grants
from rowferry.s3.operations import FORBID_OVERWRITE, Request, get_object_tagging, head_object, put_object_tagging
from rowferry.s3.properties import REPLACE_METADATA, REPLACE_TAGS
from rowferry.s3.responses import Response, name_request
from rowferry.s3.results import read_content_range
from rowferry.s3.retry import Send
from rowferry_worker.copying.server_copy import COPY_LIMIT_BYTES
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.multipart.part_size import STREAM_PART_BYTES, part_size
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.digests import start_md5
from rowferry_worker.objects.requests import size_of

Operation = tuple[SideName, str]
"""A side, and the name of an S3 operation. CopyObject and UploadPartCopy count as the production side's."""
STREAM_ABOVE_BYTES = 64 * 1024
"""Longer bodies are read piece by piece, so that little memory is needed."""
ZEROS = bytes(256 * 1024)
MADE_UP = "dry-run"
"""ETags that no byte was hashed for, and the id of uploads."""
OF_SOURCE = Response(200)
"""Stands for the tags of a copy within the server, which are those of its source."""


class DryRun:
    """Both servers, as the copy of one object finds them; its `send` is that of an `ObjectRequests`.

    A worker's code runs on it as it is. A read after a write is answered with what was written. The beginning of a body
    is read, to take its time, and thrown away: the worker gets zeros, or nothing where only the length counts. For an
    object that is streamed by parts stands one of a single byte: its one part is counted as often as the object has
    parts.
    """

    def __init__(self, send: Send, keys: tuple[str, str], method: CopyMethod) -> None:
        """`keys`: the legacy and the production key."""
        self._send_on = send
        self._legacy_key, self._production_key = keys
        self._method = method
        self._facts: dict[tuple[SideName, str, bool], Response | ObjectError] = {}
        """What the servers said, by side and operation, and whether a checksum was asked for."""
        self.received_bytes = 0
        """Of bodies, from the servers."""
        self.refusal: ObjectError | None = None
        """Why it is not known whether there is a production object: it counts as not there."""
        self._begin(honours_condition=True)

    def _begin(self, *, honours_condition: bool) -> None:
        self._honours_condition = honours_condition
        self.requests: Counter[Operation] = Counter()
        self.egress_bytes = 0
        """Of legacy bodies, as far as the worker has read them."""
        self._made: dict[str, Response] = {}
        """By operation, what reads of the production object are answered with since it was written to."""
        self._upload: Mapping[str, str] | None = None
        """The headers of a multipart upload that was begun."""
        self._body: Zeros | None = None
        self._parts = 1

    def repeat(self, *, honours_condition: bool) -> None:
        """Begin again, without the servers: what they were not asked is not there."""
        self._send_on = _find_nothing
        self._begin(honours_condition=honours_condition)

    def fact(self, side: SideName, operation: str) -> Response | None:
        """Return what a server said; None where there was nothing, or it was not asked."""
        found = self._facts.get((side, operation, False))
        return found if isinstance(found, Response) else None

    async def send(self, request: Request) -> Response:
        """Return the response to a request, and count it. Raises an ObjectError as `ObjectClient.send`."""
        span = next((value for name, value in request.headers if name == "Range"), None)
        is_part = span is not None or request.operation == "UploadPart"
        self.requests[request.side, request.operation] += self._parts if is_part else 1
        if request.method not in {"GET", "HEAD"}:
            return await self._write(request)
        if request.key not in {self._legacy_key, self._production_key}:  # no object: asks what kind of server it is
            return await self._send_on(request)
        if request.operation == "GetObject":
            return await (self._read_whole(request) if span is None else self._read_range(request, span))
        if request.side == "production" and (made := self._made.get(request.operation)) is not None:
            return made if made is not OF_SOURCE else await self._ask(get_object_tagging("legacy", self._legacy_key))
        found = await self._ask(request)
        if request.side == "legacy" and request.operation == "HeadObject" and await self._goes_by_parts():
            return self._stand_in(found)
        return found

    # Reads

    async def _ask(self, request: Request) -> Response:
        """Return what the server says, or has said before. Raises its error, also again."""
        asked = request.side, request.operation, any(name == "x-amz-checksum-mode" for name, _ in request.headers)
        if asked not in self._facts:
            try:
                self._facts[asked] = await self._send_on(request)
            except ObjectError as error:
                self._facts[asked] = error
                if asked[:2] == ("production", "HeadObject") and not isinstance(error, ObjectNotFound):
                    self.refusal, self._facts[asked] = error, ObjectNotFound(error.code, error.message)
        found = self._facts[asked]
        if isinstance(found, ObjectError):
            raise found.copy()
        return found

    async def _look_at_legacy(self) -> Response:
        return await self._ask(head_object("legacy", self._legacy_key))

    async def _exists(self) -> bool:
        """Return whether there is a production object, written now or before."""
        try:
            return "HeadObject" in self._made or bool(await self._ask(head_object("production", self._production_key)))
        except ObjectNotFound:
            return False

    async def _read_whole(self, request: Request) -> Response:
        """Return the legacy object. The first time, the beginning of its body comes from the server."""
        fact = "legacy", "HeadObject", False
        if fact not in self._facts:
            try:
                self._facts[fact] = await self._read_beginning(request)
            except ObjectRejected:
                pass  # an empty object has no first byte, and not every server has heard of ranges
            except ObjectError as error:
                self._facts[fact] = error
        head = await self._look_at_legacy()
        size_bytes = size_of(head)
        if "HeadObject" in self._made:  # the copy that tests the condition hashes what it reads
            head = _with_headers(head, etag=start_md5(bytes(size_bytes)).hexdigest())
        if request.stream_above is None or size_bytes <= request.stream_above:
            self._note_egress(size_bytes)
            return replace(head, body=bytes(size_bytes))
        self._body = Zeros(size_bytes, self._note_egress)
        return replace(head, stream=self._body)

    async def _read_beginning(self, request: Request) -> Response:
        """Read and throw away the first bytes of the legacy object; return its headers."""
        headers = (*request.headers, ("Range", f"bytes=0-{STREAM_PART_BYTES - 1}"))
        came = await self._send_on(replace(request, headers=headers, stream_above=STREAM_ABOVE_BYTES))
        told = read_content_range(came) if came.status == 206 else None
        size_bytes = told.total if told is not None and told.total is not None else came.body_bytes
        self.received_bytes += len(came.body)
        if came.stream is not None:
            try:
                while pieces := await came.stream.read():
                    self.received_bytes += sum(map(len, pieces))
            finally:
                came.stream.close()
        return _with_headers(came, content_length=size_bytes)

    async def _read_range(self, request: Request, span: str) -> Response:
        """Return a range of an object: the byte of a stand-in, or a body that is compared by its length alone."""
        head, span = await self._ask(head_object(request.side, request.key)), span.removeprefix("bytes=")
        if request.side == "legacy" and await self._goes_by_parts():
            self._note_egress(size_of(head))
            return Response(
                206, _with_headers(self._stand_in(head), content_range=f"bytes {span}/1").headers, ZEROS[:1]
            )
        first, last = map(int, span.split("-"))
        if request.side == "legacy":
            self._note_egress(last - first + 1)
        headers = _with_headers(head, content_range=f"bytes {span}/{size_of(head)}").headers
        return Response(206, headers, b"", Zeros(last - first + 1, self._note_egress))

    def _note_egress(self, size_bytes: int) -> None:
        """Count what is read; not what the one copy reads that tests the condition."""
        self.egress_bytes += 0 if "HeadObject" in self._made else size_bytes

    @property
    def _is_left(self) -> bool:
        return self._body is not None and self._body.is_left

    async def _goes_by_parts(self) -> bool:
        """Return whether the object is streamed by parts: its body was not taken, and nothing stood in its place."""
        return self._is_left and (self._upload is not None or not await self._exists())

    def _stand_in(self, head: Response) -> Response:
        size_bytes = size_of(head)
        self._parts = max(1, -(-size_bytes // part_size(size_bytes, self._method.part_bytes(head))))
        etag = head.etag or MADE_UP if md5_of(head) is None else start_md5(ZEROS[:1]).hexdigest()
        return _with_headers(head, content_length=1, etag=etag)

    # Writes

    async def _write(self, request: Request) -> Response:
        """Return what a server says that has carried a write out; nothing is sent."""
        headers = {name.lower(): value for name, value in request.headers}
        etag = b64decode(headers.get("content-md5", "")).hex() or MADE_UP
        if request.operation == "CopyObject":
            return await self._copy(request, headers)
        if request.source is not None:
            await request.source.open()
            while await request.source.read():
                pass
        await self._heed_condition(request)
        match request.operation:
            case "PutObject":
                self._put(headers, etag, len(request.body) if request.source is None else request.source.length)
            case "PutObjectTagging":
                self._made["GetObjectTagging"] = Response(200, {}, request.body)
            case "PutObjectAcl":
                self._made["GetObjectAcl"] = Response(200, {}, write_grants(headers["x-amz-acl"]))
            case "CreateMultipartUpload":
                self._upload = headers
            case "CompleteMultipartUpload":
                head = await self._look_at_legacy()
                self._put(self._upload or {}, etag, size_of(self._stand_in(head) if self._is_left else head))
            case _:
                pass
        return _confirm(etag)

    async def _copy(self, request: Request, headers: Mapping[str, str]) -> Response:
        try:
            head = await self._look_at_legacy()
        except ObjectNotFound:
            raise name_request(ObjectNotFound("NoSuchKey", ""), request) from None
        if size_of(head) > COPY_LIMIT_BYTES:
            raise name_request(ObjectRejected("EntityTooLarge", ""), request)
        await self._heed_condition(request)
        etag, replaced = head.etag or MADE_UP, REPLACE_METADATA in request.headers
        self._put(headers if replaced else {**head.headers, **headers}, etag, size_of(head))
        if REPLACE_TAGS not in request.headers:
            self._made["GetObjectTagging"] = OF_SOURCE
        return _confirm(etag)

    async def _heed_condition(self, request: Request) -> None:
        """Raise PreconditionFailed where the server refuses to overwrite an object."""
        if FORBID_OVERWRITE in request.headers and self._honours_condition and await self._exists():
            raise name_request(PreconditionFailed("PreconditionFailed", ""), request)

    def _put(self, headers: Mapping[str, str], etag: str, size_bytes: int) -> None:
        """Take the production object as written, with the properties that a request names."""
        tags = parse_qsl(headers.get("x-amz-tagging", ""), keep_blank_values=True)
        head = _with_headers(Response(200, headers), etag=etag, content_length=size_bytes, x_amz_request_id=MADE_UP)
        head = _with_headers(head, last_modified=formatdate(usegmt=True), x_amz_tagging_count=len(tags))
        self._made = {
            "HeadObject": head,
            "GetObjectTagging": Response(200, {}, put_object_tagging(MADE_UP, (*tags,)).body),
            "GetObjectAcl": Response(200, {}, write_grants(headers.get("x-amz-acl", "private"))),
        }


class Zeros(BodyStream):
    """A body of zeros."""

    def __init__(self, length: int, note: Callable[[int], None]) -> None:
        """`note` is told how many bytes are read."""
        self.length = self._missing = length
        self._note = note
        self.is_left = False
        """Whether it was closed before any of it was read."""

    async def read(self) -> list[bytes]:
        """Return the next piece; nothing at the end, or when it was closed."""
        piece = ZEROS[: self._missing]
        self._missing -= len(piece)
        self._note(len(piece))
        return [piece] if piece else []

    def wake(self) -> None:
        """Do nothing: `read` does not wait."""

    def close(self) -> None:
        """Give no more."""
        self.is_left = self.is_left or self._missing == self.length
        self._missing = 0


async def _find_nothing(request: Request) -> Response:
    """Send nothing: no object is there, and no tags."""
    raise name_request(ObjectNotFound("NoSuchTagSet", ""), request)


def _with_headers(head: Response, **changed: str | int) -> Response:
    """Return the headers of an object with others in the place of some, and without its body."""
    named = {name.replace("_", "-"): f'"{value}"' if name == "etag" else str(value) for name, value in changed.items()}
    return Response(200, {name: value for name, value in head.headers.items() if name != "content-range"} | named)


def _confirm(etag: str) -> Response:
    """Return a response with all that is read of those to writes."""
    told = f"<Result><ETag>{etag}</ETag><UploadId>{MADE_UP}</UploadId></Result>"
    return Response(200, {"etag": f'"{etag}"'}, told.encode())
