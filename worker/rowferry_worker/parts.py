"""Objects too large for one request: a multipart upload, each part pinned to the ETag that the first look saw."""

from collections.abc import Callable, Generator
from typing import TypeVar

from rowferry.errors import ObjectDamaged, ObjectError, ServerFault
from rowferry.s3_answer import Answer, read_text
from rowferry.s3_request import (
    Request,
    abort_multipart_upload,
    complete_multipart_upload,
    create_multipart_upload,
    get_object,
    upload_part,
    upload_part_copy,
)
from rowferry_worker.journey import ask

MAX_PARTS = 10_000
"""Source: Amazon S3 User Guide, "Multipart upload limits"."""

READ_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""

T = TypeVar("T")
Steps = Generator[Request, Answer, T]
SendPart = Callable[[str, int, int, int], Steps[str]]
"""Sends one part: (upload id, part number from 1, first byte, last byte included) → its unquoted ETag."""


def send_in_parts(
    target_key: str,
    head: Answer,
    headers: list[tuple[str, str]],
    send_part: SendPart,
    *,
    part_bytes: int,
    if_none_match: bool,
) -> Steps[int]:
    """Write an object part by part and return its bytes; one part is in memory at a time.

    An upload that fails is aborted, so that nothing of it stays behind.
    """
    size_bytes = head.content_length or 0
    begun = yield from ask(create_multipart_upload(target_key, headers=headers))
    upload_id = read_text(begun.body, "UploadId")
    if not upload_id:
        raise ServerFault("UnreadableAnswer", "the server began an upload without naming it")
    try:
        parts = yield from _send_all(upload_id, size_bytes, part_size(size_bytes, part_bytes), send_part)
        complete = complete_multipart_upload(target_key, upload_id=upload_id, parts=parts, if_none_match=if_none_match)
        yield from ask(complete)
    except ObjectError:
        yield abort_multipart_upload(target_key, upload_id=upload_id)
        raise
    return size_bytes


def part_size(size_bytes: int, wanted_bytes: int) -> int:
    """Return the size of a part: `wanted_bytes`, or more where that would make over 10,000 parts."""
    return max(wanted_bytes, -(-size_bytes // MAX_PARTS))


def copy_part(legacy_bucket: str, source_key: str, target_key: str, head: Answer) -> SendPart:
    """Return the way to have the production server copy a part itself."""

    def send(upload_id: str, number: int, first: int, last: int) -> Steps[str]:
        request = upload_part_copy(
            target_key,
            source_bucket=legacy_bucket,
            source_key=source_key,
            source_etag=head.etag or "",
            first_byte=first,
            last_byte=last,
            upload_id=upload_id,
            part_number=number,
        )
        return _etag_of((yield from ask(request)))

    return send


def stream_part(source_key: str, target_key: str, head: Answer) -> SendPart:
    """Return the way to read a part from one endpoint and write it to the other."""

    def send(upload_id: str, number: int, first: int, last: int) -> Steps[str]:
        body = bytearray()
        for begin in range(first, last + 1, READ_BYTES):
            end = min(begin + READ_BYTES - 1, last)
            request = get_object("legacy", source_key, first_byte=begin, last_byte=end, if_match=head.etag)
            body += (yield from ask(request)).body
        if len(body) != last - first + 1:
            raise ObjectDamaged("TruncatedBody", f"{len(body)} bytes came of {last - first + 1}")
        sent = yield from ask(upload_part(target_key, bytes(body), upload_id=upload_id, part_number=number))
        return _etag_of(sent)

    return send


def _send_all(upload_id: str, size_bytes: int, part_bytes: int, send_part: SendPart) -> Steps[list[tuple[int, str]]]:
    parts: list[tuple[int, str]] = []
    for number, first in enumerate(range(0, size_bytes, part_bytes), 1):
        last = min(first + part_bytes, size_bytes) - 1
        parts.append((number, (yield from send_part(upload_id, number, first, last))))
    return parts


def _etag_of(answer: Answer) -> str:
    if not answer.etag:
        raise ServerFault("UnreadableAnswer", "the server took a part without naming its ETag")
    return answer.etag
