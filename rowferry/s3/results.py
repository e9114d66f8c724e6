"""What a success must hold: a 200 does not always come from an S3 server. No I/O."""

import re
from html import unescape
from typing import NamedTuple

from rowferry.errors import ObjectDamaged, ObjectError, ServerFault
from rowferry.s3.operations import Request
from rowferry.s3.responses import Response, name_of, parse_xml, read_result

_match_copied = re.compile(
    rb"\s*(?:<\?xml[^<>]*>\s*)?<Copy(Object|Part)Result(?: [^<>]*)?>\s*(?:<LastModified>[^<]*</LastModified>\s*)?"
    rb"<ETag>(?:\"|&quot;|&#34;)?([^<&\"\s]+)(?:\"|&quot;|&#34;)?</ETag>\s*"
    rb"(?:<(?!ETag>)(\w+)>[^<]*</\3>\s*)*</Copy\1Result>\s*"
).fullmatch
"""The usual response to a copy; matching it costs a fraction of parsing it."""
_match_digest = re.compile(r"[0-9a-f]{32}(-\d+)?").fullmatch
_match_range = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(?:(\d{1,19})|\*)", re.ASCII).fullmatch
_match_asked = re.compile(r"bytes=(\d{1,19})-(\d{0,19})", re.ASCII).fullmatch


class ContentRange(NamedTuple):
    """Which bytes of an object came: from `first` to `last`, both included, of `total`."""

    first: int
    last: int
    total: int | None
    """None where the server did not say."""


def looks_like_s3(response: Response) -> bool:
    """Return whether the headers of an object are such as only S3 servers send; False leaves it open."""
    return _match_digest(response.etag or "") is not None or any(name.startswith("x-amz-") for name in response.headers)


def read_written_etag(response: Response) -> str:
    """Return the unquoted ETag by which PutObject or UploadPart confirms what was written.

    Raises ServerFault where there is none: a login page answers 200 as well.
    """
    etag = _unquote(response.headers.get("etag", ""))
    if not etag or response.body.lstrip()[:5].lower() in {b"<html", b"<!doc"}:
        raise ServerFault("UnreadableResponse", "the server answered without the ETag of what it should have written")
    return etag


def read_copied_etag(response: Response) -> str:
    """Return the unquoted ETag in the result by which a copy is confirmed.

    Raises ServerFault where there is none: a 200 that was cut off may have been about to tell an error.
    """
    if (etag := match_copied(response.body)) is not None:
        return etag
    etag = _unquote(read_result(response.body, "ETag").get("ETag", ""))
    if not etag:
        raise ServerFault("UnreadableResponse", "the server did not say what it had copied")
    return etag


def match_copied(body: bytes) -> str | None:
    """Return the unquoted ETag in the usual result of a copy; None: `read_copied_etag` tells."""
    usual = _match_copied(body)
    return usual[2].decode() if usual is not None and usual[2].isascii() else None


def read_completed_etag(response: Response) -> str | None:
    """Return the unquoted ETag in a CompleteMultipartUploadResult; None where it is well-formed but names no ETag.

    Ceph RGW completes rightly and answers with an empty one (ceph/ceph#50627): the object has to be looked at then.
    Raises ServerFault where the body is no such result.
    """
    result = read_result(response.body, "ETag")
    root = None if result else parse_xml(response.body)
    if not result and (root is None or name_of(root) != "CompleteMultipartUploadResult"):
        raise ServerFault("UnreadableResponse", "the server did not say what it had completed")
    return _unquote(result.get("ETag", "")) or None


def read_upload_id(response: Response) -> str:
    """Return the id in the response to CreateMultipartUpload. Raises ServerFault where there is none."""
    upload_id = read_result(response.body, "UploadId").get("UploadId", "")
    if not upload_id:
        words = (
            "the server did not return the ID of the upload that it may have begun; `rowferry clean-uploads` ends it"
        )
        raise ServerFault("UnreadableResponse", words)
    return upload_id


def read_tag_count(response: Response) -> int | None:
    """Return how many tags a response announces; None where it announces nothing. Raises ServerFault for no number."""
    count = response.headers.get("x-amz-tagging-count")
    if count is None:
        return None
    if not (count.isascii() and count.isdigit() and len(count) <= 9):
        raise ServerFault("UnreadableResponse", f"the server announces {count[:40]!r} tags")
    return int(count)


def read_content_range(response: Response) -> ContentRange | None:
    """Return what Content-Range says; None where there is none that can be read."""
    found = _match_range(response.headers.get("content-range", ""))
    if found is None:
        return None
    return ContentRange(int(found[1]), int(found[2]), None if found[3] is None else int(found[3]))


def refuse_unsound(request: Request, response: Response) -> ObjectError | None:
    """Return why a success cannot be taken for one, None where it can.

    `request` is what was sent. Bytes of another range than the one asked for are another object's, as far as can be
    told.
    """
    if request.operation != "GetObject":
        return None
    asked = next((_match_asked(value) for name, value in request.headers if name == "Range"), None)
    if response.status == 206:
        return _compare_range(asked, response)
    if asked is not None and (int(asked[1]) > 0 or (asked[2] and response.body_bytes > int(asked[2]) + 1)):
        return ObjectDamaged("WrongRange", "the server sent the whole object where a range was asked for")
    return None


def _compare_range(asked: re.Match[str] | None, response: Response) -> ObjectError | None:
    """Return why the bytes of a 206 are not those that were asked for; only at an object's end may they be fewer."""
    came = read_content_range(response)
    if asked is None or came is None:
        return ObjectDamaged("WrongRange", "the server sent a range without saying which, or without being asked")
    size = came.last - came.first + 1
    if response.body_bytes != size:
        return ObjectDamaged("TruncatedBody", f"{response.body_bytes} bytes came of {size}")
    last_asked = int(asked[2]) if asked[2] else None
    is_end = came.total is not None and came.last == came.total - 1
    is_last = came.last == last_asked or (is_end and (last_asked is None or came.last < last_asked))
    if came.first != int(asked[1]) or not is_last:
        return ObjectDamaged("WrongRange", f"bytes {came.first}-{came.last} came where {asked[0]} was asked for")
    return None


def _unquote(etag: str) -> str:
    return unescape(etag).strip().strip('"')  # versitygw writes &#34; for &quot;
