"""The usual success of a copy, recognised at a glance in the bytes that came. No I/O.

Nothing is left to a reader's judgement: what is not of this form, to the byte, is for the parser. What is recognised
here is a success there as well, of the same ETag, after which the connection stays.
"""

import re

from rowferry.s3.results import match_copied

_match_head = re.compile(
    rb"HTTP/1\.1 200 [ -~]*\r\n(?:[A-Za-z0-9_-]+:[\t -~\x80-\xff]*\r\n)+\r\n",
).match
_LENGTH, _CONNECTION = b"\r\ncontent-length: ", b"\r\nconnection: keep-alive\r\n"


def recognise_copy(data: bytes) -> tuple[str, int] | None:
    """Return the unquoted ETag in a CopyObjectResult, and the length of that; None for anything else."""
    head, length = _read_head(data)
    if not head or len(data) != len(head) + length or b"<Error" in data:
        return None
    etag = match_copied(data[len(head) :])
    return None if etag is None else (etag, length)


def _read_head(data: bytes) -> tuple[bytes, int]:
    """Return the head of a success in lower case, and its Content-Length; an empty head where it is not the usual one.

    It has one Content-Length, no other framing, and the connection stays.
    """
    found = _match_head(data)
    if found is None:
        return b"", 0
    head = found[0].lower()
    start = head.find(_LENGTH)
    length = head[start + len(_LENGTH) : head.find(b"\r\n", start + 2)]
    if start < 0 or not length.isdigit() or len(length) > 15 or head.count(b"\r\ncontent-length") > 1:
        return b"", 0
    if b"transfer-encoding" in head or b"\r\nupgrade" in head:
        return b"", 0
    if b"connection" in head and (head.count(b"connection") > 1 or _CONNECTION not in head):
        return b"", 0
    return head, int(length)
