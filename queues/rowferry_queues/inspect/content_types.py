"""What bytes are, by how they begin: a short table of what objects in buckets are, and the size of an image.

Libraries were tried: puremagic takes a millisecond an object, ten times what all else takes; filetype knows no text and
was last released in 2022; python-magic needs a system's libmagic.
"""

import codecs
import io
import re
from importlib import import_module
from typing import Any

from rowferry.errors import MigrationFault

HEAD_BYTES = 4096
"""How much is looked at."""
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF.{4}WEBP", "image/webp"),
    (rb"BM", "image/bmp"),
    (rb"II\*\0|MM\0\*", "image/tiff"),
    (rb"\x00\x00\x01\x00", "image/vnd.microsoft.icon"),
    (rb"8BPS", "image/vnd.adobe.photoshop"),
    (rb"\xff\n|\0\0\0\x0cJXL ", "image/jxl"),
    (rb".{4}ftypavif", "image/avif"),
    (rb".{4}ftyphei[cx]", "image/heic"),
    (rb".{4}ftypmif1", "image/heif"),
    (rb".{4}ftypqt", "video/quicktime"),
    (rb".{4}ftypM4A", "audio/mp4"),
    (rb".{4}ftyp", "video/mp4"),
    (rb"RIFF.{4}AVI ", "video/vnd.avi"),
    (rb"RIFF.{4}WAVE", "audio/vnd.wave"),
    (rb"OggS", "application/ogg"),
    (rb"fLaC", "audio/flac"),
    (rb"ID3|\xff\xfb", "audio/mpeg"),
    (rb"FLV\x01", "video/x-flv"),
    (rb"%PDF-", "application/pdf"),
    (rb"%!PS", "application/postscript"),
    (rb"{\\rtf", "application/rtf"),
    (rb"\x1f\x8b", "application/gzip"),
    (rb"\x28\xb5\x2f\xfd", "application/zstd"),
    (rb"BZh", "application/x-bzip2"),
    (rb"\xfd7zXZ\0", "application/x-xz"),
    (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (rb"Rar!\x1a\x07", "application/vnd.rar"),
    (rb".{257}ustar", "application/x-tar"),
    (rb"SQLite format 3\0", "application/vnd.sqlite3"),
    (rb"PAR1", "application/vnd.apache.parquet"),
    (rb"ARROW1", "application/vnd.apache.arrow.file"),
    (rb"Obj\x01", "application/vnd.apache.avro"),
    (rb"PGDMP", "application/x-postgresql-dump"),
    (rb"\x7fELF", "application/x-elf"),
    (rb"MZ", "application/vnd.microsoft.portable-executable"),
    (rb"\0asm", "application/wasm"),
    (rb"wOFF", "font/woff"),
    (rb"wOF2", "font/woff2"),
    (rb"OTTO", "font/otf"),
    (rb"\x00\x01\x00\x00\x00", "font/ttf"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-cfb"),
    (rb"PK\x03\x04.*word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (rb"PK\x03\x04.*xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (rb"PK\x03\x04.*ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (rb"PK\x03\x04.*META-INF/MANIFEST\.MF", "application/java-archive"),
    (rb"PK\x03\x04", "application/zip"),
)
"""How the bytes of each type begin. Source of the types: IANA's registry, where it has one."""
MEDIA = re.compile(b"|".join(b"(%s)" % signature for signature, _ in SIGNATURES), re.DOTALL)
ZIP_MIMETYPE = re.compile(
    rb"PK\x03\x04.{26,120}?mimetype(application/[\w.+-]+?)(?=PK\x03\x04|PK\x07\x08|[^\w.+-]|\Z)", re.DOTALL
)
"""EPUB and OpenDocument begin with a file that says it. Source: OCF 3.3, section 4.3."""
MARKUP = (
    (re.compile(rb"<!doctype html|<html[\s>]", re.IGNORECASE), "text/html"),
    (re.compile(rb"(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype svg[^>]*>\s*)?<svg[\s>]", re.DOTALL), "image/svg+xml"),
    (re.compile(rb"<\?xml\s"), "application/xml"),
    (re.compile(rb"""\{\s*["}]|\[\s*[\["{\d\]tfn-]"""), "application/json"),
    (re.compile(rb""), "text/plain"),
)
"""What text is, by how it begins; the first one counts."""
CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
UNKNOWN = "application/octet-stream"
MOST_PIXELS = 2**31 - 1
"""The largest width or height of an image: PNG allows no more, and `integer` holds it. Source: PNG, section 11.2.1."""


def find_type(head: bytes) -> str | None:
    """Return the content type of what begins with these bytes, HEAD_BYTES if there are so many; None: it is empty."""
    if not head:
        return None
    if found := ZIP_MIMETYPE.match(head):
        return found[1].decode()
    if (found := MEDIA.match(head)) and found.lastindex:
        return SIGNATURES[found.lastindex - 1][1]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "text/plain"
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if CONTROLS.search(head) or not _is_utf8(head):
        return UNKNOWN
    return next(name for pattern, name in MARKUP if pattern.match(text))


def _is_utf8(head: bytes) -> bool:
    """Return whether bytes are UTF-8, but for a last character that is cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def measure_image(head: bytes) -> tuple[int | None, int | None]:
    """Return width and height in whole pixels of what begins with these bytes; None where it is no image that says so.

    It may take long where an image lies: half a second for a number of 200,000 digits.
    """
    try:
        imagesize: Any = import_module("imagesize")  # an extra
    except ImportError as error:
        words = f"width and height need the package imagesize ({error})"
        raise MigrationFault(f"{words}: install rowferry[inspect].") from error
    width, height = imagesize.get(io.BytesIO(head))  # of drawings, with fractions
    return (round(width), round(height)) if 0 <= width <= MOST_PIXELS and 0 <= height <= MOST_PIXELS else (None, None)
