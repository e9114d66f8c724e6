"""One object's content: inflated and bounded while it is read, its facts computed on the way. Blocks as chunks do."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from rowferry.errors import MigrationFault, ObjectError
from rowferry_queues.inspect.content_types import find_type
from rowferry_queues.inspect.spec import DIMENSIONS, InspectSettings, MiB

PIECE_BYTES = 64 * 1024
"""The most that is inflated at once."""
WINDOW_LOG = 23
"""A zstd frame may look back 8 MiB: what every decoder should support. Source: RFC 8878, section 3.1.1.1.2."""
MOST_PIXELS = 2**31 - 1
"""The largest width or height of an image: PNG allows no more, and `integer` holds it. Source: PNG, section 11.2.1."""
RATIO_FROM_BYTES = 16 * MiB
"""What inflates to less is no bomb."""
ENCODINGS = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}
"""Values of Content-Encoding that are inflated."""


def _import_zstd() -> Any:
    """Return the module of the standard library, since Python 3.14, or the same for older ones; None without it."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


ZSTD = _import_zstd()
UNREADABLE: tuple[type[Exception], ...] = (OSError, ValueError, zlib.error, getattr(ZSTD, "ZstdError", ValueError))
"""What the files of gzip and zstd raise for corrupt data."""


class ContentFault(ObjectError):
    """The bytes came as they are, but they are corrupt, cut short, too many, or the function fails with them."""


class Taken(io.RawIOBase):
    """A readable file of the bytes that `take` returns, at most so many at a time, and none at the end."""

    def __init__(self, take: Callable[[int], bytes], name: str = "") -> None:
        self._take = take
        self.name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._take(min(len(buffer), PIECE_BYTES))
        buffer[: len(piece)] = piece
        return len(piece)


class Inspection:
    """The reading of one object."""

    def __init__(self, chunks: Iterator[bytes], settings: InspectSettings, key: str = "", told: str = "") -> None:
        """`chunks`: the object as it is stored; `told`: its Content-Encoding. Raises as reads of `content` do."""
        facts = settings.facts
        self._settings, self._chunks, head = settings, chunks, b""
        while len(head) < 4 and (chunk := next(chunks, b"")):
            head += chunk
        self._left = memoryview(head)
        self._digest = hashlib.sha256() if "sha256" in facts else None
        self._content_digest = hashlib.sha256() if "inflated_sha256" in facts else None
        self._lines, self._head, self._last, self.size, self.inflated_size = 0, b"", b"\n", 0, 0
        self.fault: ObjectError | None = None
        """Why it could not be read on; what a function has made of that does not count."""
        inflates = settings.inflate == "auto" and (settings.function or facts - {"size", "sha256"})
        self.encoding = find_encoding(head, told) if inflates else None
        self._file = open_inflated(Taken(self._take_stored), self.encoding)
        self.content = Taken(self._take_content, key)
        """What its bytes inflate to. Reads raise ContentFault, and any error of the chunks."""

    def read_rest(self, *, is_cut: bool) -> None:
        """Read on until all facts are known. Raises as reads do; `is_cut`: but for the end of bytes that were cut."""
        most_bytes = self._settings.head_bytes if self._settings.is_of_head else float("inf")
        try:
            while self.inflated_size < most_bytes and self.content.read(PIECE_BYTES):
                pass
        except ContentFault:
            if not is_cut or self._take_stored(1):
                raise

    def read_facts(self) -> dict[str, Any]:
        """Return the facts by name, `size` being that of what was read."""
        found: dict[str, Any] = {"size": self.size, "inflated_size": self.inflated_size, "encoding": self.encoding}
        found["sha256"] = self._digest and self._digest.hexdigest()
        found["inflated_sha256"] = self._content_digest and self._content_digest.hexdigest()
        found["lines"] = self._lines + (self._last != b"\n")
        found["type"] = find_type(self._head)
        if self._settings.facts & DIMENSIONS:
            found["width"], found["height"] = measure_image(self._head)
        return {name: found[name] for name in self._settings.facts}

    def _take_stored(self, most_bytes: int) -> bytes:
        stored = self._left or memoryview(next(self._chunks, b""))
        piece, self._left = bytes(stored[:most_bytes]), stored[most_bytes:]
        self.size += len(piece)
        if self._digest is not None:
            self._digest.update(piece)
        return piece

    def _take_content(self, most_bytes: int) -> bytes:
        try:
            if self.fault is not None:
                raise self.fault
            piece: bytes = self._file.read(most_bytes)
            self._compute(piece)
        except ObjectError as error:
            self.fault = error
        except EOFError:
            self.fault = ContentFault("TruncatedContent", f"its {self.encoding} data end before their end")
        except UNREADABLE as error:
            self.fault = ContentFault("CorruptContent", f"it is no {self.encoding}: {error}")
        else:
            return piece
        raise self.fault

    def _compute(self, piece: bytes) -> None:
        """Compute with what is inflated. Raises ContentFault where it is more than it may be."""
        settings = self._settings
        self.inflated_size += len(piece)
        if self.encoding is not None and self.inflated_size > settings.max_inflated_bytes:
            words = f"it inflates to more than {settings.max_inflated_bytes} bytes (max_inflated_bytes)"
            raise ContentFault("InflatedTooLarge", words)
        if self.encoding is not None and self.inflated_size > max(RATIO_FROM_BYTES, settings.max_ratio * self.size):
            words = f"it inflates to more than {settings.max_ratio:g} times its size (max_ratio)"
            raise ContentFault("InflatedTooLarge", words)
        if len(self._head) < settings.head_bytes:
            self._head += piece[: settings.head_bytes - len(self._head)]
        if self._content_digest is not None:
            self._content_digest.update(piece)
        if piece and "lines" in settings.facts:
            self._lines, self._last = self._lines + piece.count(b"\n"), piece[-1:]


def find_encoding(head: bytes, told: str = "") -> str | None:
    """Return the encoding of a body by its first four bytes, or more; None: it has none.

    `told`: the object's Content-Encoding. Raises ContentFault where it names one, and the bytes another. Sources: RFC
    1952, section 2.3.1, for the method and the reserved bits of gzip; RFC 8878, section 3.1.2, for skippable frames.
    """
    found = None
    if head.startswith(b"\x1f\x8b\x08") and not any(flags & 0xE0 for flags in head[3:4]):
        found = "gzip"
    elif head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):
        found = "zstd"
    named = ENCODINGS.get(told.strip().lower())
    if named is not None and head and found != named:
        raise ContentFault("CorruptContent", f"its Content-Encoding is {named}, but its bytes are not")
    return found


def open_inflated(stored: Taken, encoding: str | None) -> Any:
    """Return a file of what stored bytes inflate to. Raises ContentFault where zstd cannot be read here."""
    if encoding != "zstd":
        return stored if encoding is None else gzip.GzipFile(fileobj=stored)
    if ZSTD is None:
        raise ContentFault("UnknownEncoding", "zstd cannot be read here: install rowferry[inspect], or Python 3.14")
    return ZSTD.ZstdFile(stored, options={ZSTD.DecompressionParameter.window_log_max: WINDOW_LOG})


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
