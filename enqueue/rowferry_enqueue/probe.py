"""A probe object in the production bucket: what a server keeps of it, and which conditions it honours."""

import gzip
import secrets
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerNotTrusted,
    SideFault,
)
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import (
    Request,
    abort_multipart_upload,
    complete_multipart_upload,
    copy_object,
    create_multipart_upload,
    encode_key,
    get_object,
    get_object_tagging,
    head_object,
    put_object,
    upload_part,
    upload_part_copy,
)
from rowferry.s3.responses import Answer, read_tags
from rowferry.s3.results import read_copied_etag, read_upload_id, read_written_etag
from rowferry_enqueue.finding import Finding, note
from rowferry_enqueue.probe_properties import HEADERS, METADATA, TAGGING, TAGS, encode_tags, find_lost

PREFIX = "rowferry-check-"
"""What the key of each probe object begins with."""
NO_ETAG = "0" * 32

_NOT_WRITTEN = (AccessDenied, BucketNotFound, ObjectRejected, PreconditionFailed, ServerNotTrusted, SideFault)
"""Errors after which nothing can have been written."""


class Probe:
    """Writes objects below one key of its own and forgets none of them; each method raises ObjectError."""

    def __init__(self, client: ObjectClient, bucket: str) -> None:
        """Write nothing yet."""
        self.key = f"{PREFIX}{secrets.token_hex(8)}"
        self.body = gzip.compress(secrets.token_bytes(32))
        self.lost: dict[str, list[str]] = {}
        """What did not come back, by the operation that wrote it."""
        self.conditions: dict[str, str] = {}
        """What becomes of If-None-Match, by operation: "honoured", "ignored" or why it is refused."""
        self._client = client
        self._bucket = bucket
        self._left: dict[str, None] = {}
        self._upload: tuple[str, str] | None = None
        self._described = [*HEADERS.items(), *METADATA.items(), (TAGGING, encode_tags(TAGS))]

    def write(self) -> bool:
        """Write the probe with all that describes an object, and return whether the same bytes come back."""
        self._put_described()
        if self._ask(get_object("production", self.key)).body != self.body:
            return False
        self._compare("PutObject", self.key)
        self._try_condition("PutObject", put_object(self.key, self.body, if_none_match=True))
        return True

    def copy_from(self, bucket: str, key: str) -> None:
        """Let the server copy an object of another bucket."""
        self._copy(copy_object(self._copy_key, source_bucket=bucket, source_key=key, if_none_match=False))

    def copy_itself(self) -> str:
        """Let the server copy the probe, and return what becomes of `x-amz-copy-source-if-match`."""
        source = {"source_bucket": self._bucket, "source_key": self.key}
        self._copy(copy_object(self._copy_key, **source, if_none_match=False))
        self._compare("CopyObject", self._copy_key)
        self._try_condition("CopyObject", copy_object(self._copy_key, **source, if_none_match=True))
        pinned = copy_object(self._copy_key, **source, if_none_match=False, source_etag=NO_ETAG)
        return _judge_condition(self._client.ask(pinned))

    def write_parts(self, *, server_side: bool) -> None:
        """Write an object of one part, and again over it under a condition that does not hold."""
        answer = self._complete(if_none_match=False, server_side=server_side)
        if answer.error is not None:
            raise answer.error
        self._compare("CompleteMultipartUpload", self._parts_key)
        answer = self._complete(if_none_match=True, server_side=server_side)
        self.conditions["CompleteMultipartUpload"] = _judge_condition(answer)

    def remove(self) -> Iterator[Finding]:
        """Remove all that was written, or may have been; yield what cannot be removed."""
        if self._upload is not None:
            key, upload_id = self._upload
            error = self._client.ask(abort_multipart_upload(key, upload_id=upload_id)).error
            if error is not None and not isinstance(error, ObjectNotFound) and error.code != "NoSuchUpload":
                yield note(f"an unfinished upload to {key!r} may be left ({error})", "abort it by hand")
        for key in self._left:
            error = self._client.ask(_delete_object(key)).error
            if error is not None and not isinstance(error, ObjectNotFound):
                yield note(f"the probe object {key!r} cannot be removed again ({error})", "remove it by hand")
        self._left.clear()

    @property
    def _copy_key(self) -> str:
        return f"{self.key}-copy"

    @property
    def _parts_key(self) -> str:
        return f"{self.key}-parts"

    def _put_described(self) -> None:
        """Write the probe; without its tags, or without all that describes it, where the server takes it only so."""
        choices: Sequence[tuple[str, list[tuple[str, str]]]] = (
            ("", self._described),
            ("tags", self._described[:-1]),
            ("metadata, content headers and tags", []),
        )
        first: ObjectError | None = None
        for without, headers in choices:
            request = put_object(self.key, self.body, headers=headers, if_none_match=False)
            try:
                read_written_etag(self._write(request))
            except (AccessDenied, ObjectRejected) as error:
                first = first or error
                continue
            self._described = headers
            self.lost["PutObject"] = [f"{without} ({first})"] if first else []
            return
        if first is not None:
            raise first

    def _copy(self, request: Request) -> None:
        read_copied_etag(self._write(request))

    def _complete(self, *, if_none_match: bool, server_side: bool) -> Answer:
        key = self._parts_key
        upload_id = read_upload_id(self._ask(create_multipart_upload(key, headers=self._described)))
        self._upload = key, upload_id
        if server_side:
            etag = read_copied_etag(self._ask(self._copy_part(upload_id)))
        else:
            etag = read_written_etag(self._ask(upload_part(key, self.body, upload_id=upload_id, part_number=1)))
        self._left[key] = None
        request = complete_multipart_upload(key, upload_id=upload_id, parts=[(1, etag)], if_none_match=if_none_match)
        answer = self._client.ask(request)
        if answer.error is None:
            self._upload = None
        return answer

    def _copy_part(self, upload_id: str) -> Request:
        head = self._ask(head_object("production", self.key))
        return upload_part_copy(
            self._parts_key,
            source_bucket=self._bucket,
            source_key=self.key,
            source_etag=head.etag or "",
            first_byte=0,
            last_byte=len(self.body) - 1,
            upload_id=upload_id,
            part_number=1,
        )

    def _compare(self, operation: str, key: str) -> None:
        """Note what an operation did not keep of what it was given."""
        given = dict(self._described)
        lost = find_lost(given, self._ask(head_object("production", key)).headers)
        if TAGGING in given:
            try:
                if dict(read_tags(self._ask(get_object_tagging("production", key)).body)) != TAGS:
                    lost.append("tags")
            except ObjectError as error:  # a server that knows none may even answer with the object itself
                lost.append(f"tags, as far as can be seen ({error})")
        self.lost.setdefault(operation, []).extend(lost)

    def _try_condition(self, operation: str, request: Request) -> None:
        self.conditions[operation] = _judge_condition(self._client.ask(request))

    def _write(self, request: Request) -> Answer:
        self._left[request.key] = None
        try:
            return self._ask(request)
        except _NOT_WRITTEN:
            del self._left[request.key]
            raise

    def _ask(self, request: Request) -> Answer:
        answer = self._client.ask(request)
        if answer.error is not None:
            raise answer.error
        return answer


@contextmanager
def written_probe(client: ObjectClient, bucket: str, left: list[Finding]) -> Generator[Probe]:
    """Yield a probe; remove what it wrote in the end, however that comes, and put what stays in `left`."""
    probe = Probe(client, bucket)
    try:
        yield probe
    finally:
        left.extend(probe.remove())


def _judge_condition(answer: Answer) -> str:
    if answer.error is None:
        return "ignored"
    return "honoured" if isinstance(answer.error, PreconditionFailed) else f"refused ({answer.error.code})"


def _delete_object(key: str) -> Request:
    """Return the request that removes a probe object; rowferry deletes nothing else."""
    if not key.startswith(PREFIX):
        raise ObjectRejected("NotAProbe", f"{key!r} was not written by this check")
    return Request("production", "DeleteObject", "DELETE", key, encode_key(key))
