"""The content type of bytes, by how they begin."""

import pytest

from rowferry_queues.inspect.content_types import HEAD_BYTES, SIGNATURES, UNKNOWN, find_type

ZIP = b"PK\x03\x04" + bytes(26)
OFFICE = "application/vnd.openxmlformats-officedocument"
TYPES: tuple[tuple[bytes, str | None], ...] = (
    (b"", None),
    (b"\x89PNG\r\n\x1a\n\0", "image/png"),
    (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
    (b"RIFF\n\n\n\nWAVEfmt ", "audio/vnd.wave"),
    (b"RIFX\x01\x02\x03\x04WEBP", UNKNOWN),
    (b"\0\0\x01\0\x01\0", "image/vnd.microsoft.icon"),
    (b"\0\x01\0\0\0\x0c", "font/ttf"),
    (b"MM\0*\0\0\0\x08", "image/tiff"),
    (b"\0\0\0\x18ftypheic", "image/heic"),
    (b"\0\0\0\x18ftypisom", "video/mp4"),
    (bytes(257) + b"ustar", "application/x-tar"),
    (ZIP + b"[Content_Types].xml" + bytes(99) + b"word/document.xml", f"{OFFICE}.wordprocessingml.document"),
    (ZIP + b"[Content_Types].xml" + bytes(99) + b"xl/workbook.xml", f"{OFFICE}.spreadsheetml.sheet"),
    (ZIP + b"mimetypeapplication/epub+zipPK\x03\x04", "application/epub+zip"),
    (ZIP + b"a.txt", "application/zip"),
    (b"\xef\xbb\xbf <!DOCTYPE HTML>", "text/html"),
    (b"<?xml version='1.0'?>\n<!-- a -->\n<svg width='1'>", "image/svg+xml"),
    (b"<?xml version='1.0'?><feed>", "application/xml"),
    (b' {"a": 1}', "application/json"),
    (b"[1, 2]", "application/json"),
    (b"\xff\xfeh\0i\0", "text/plain"),
    ("é".encode() * 2047 + "é".encode()[:1], "text/plain"),
    (b"caf\xe9 au lait", UNKNOWN),
    (b"text\0", UNKNOWN),
)


def test_bytes_have_the_type_that_they_begin_like(subtests: pytest.Subtests) -> None:
    for head, expected in TYPES:
        with subtests.test(expected or "empty", head=head[:40]):
            assert find_type(head[:HEAD_BYTES]) == expected


def test_no_signature_leads_back_into_the_others() -> None:
    """They are one pattern: a number behind a backslash, or a group, would mean another than its author thought."""
    assert not any(b"(" in pattern or rb"\1" in pattern for pattern, _ in SIGNATURES)
