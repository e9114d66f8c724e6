"""One object's content: inflated and bounded while it is read, its facts computed on the way. Blocks as chunks do."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

import msgspec

from rowferry.errors import ObjectError
from rowferry.functions import Function, load_function
from rowferry.queue_spec import describe_fault
from rowferry_queues.inspect.spec import InspectSettings, MiB

PIECE_BYTES = 64 * 1024
"""The most that is inflated at once."""
WINDOW_LOG = 23
"""A zstd frame may look back 8 MiB: what every decoder should support. Source: RFC 8878, section 3.1.1.1.2."""
MOST_VALUES_BYTES = MiB
"""The most that what a function returns of one object may take, as JSON."""


def _import_zstd() -> Any:
    """Return the module of the standard library, since Python 3.14, or the same for older ones; None without it."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    return None


ZSTD = _import_zstd()
UNREADABLE: tuple[type[Exception], ...] = (OSError, ValueError, zlib.error, getattr(ZSTD, "ZstdError", ValueError))
"""What the files of gzip and zstd raise for corrupt data."""


class ContentFault(ObjectError):
    """The bytes came as they are, but they are corrupt, cut short, too many, or the function fails with them."""


def inspect(chunks: Iterator[bytes], settings: InspectSettings, key: str) -> dict[str, Any]:
    """Return an object's facts by name, and what its function returns. Raises ContentFault, and errors of chunks."""
    # Its module is imported before bytes are asked for: that takes its own time.
    function = None if settings.function is None else load_function(settings.function)
    inspection = Inspection(chunks, settings, key)
    values = {} if function is None else inspection.call(function)
    while (function is None or settings.facts) and inspection.content.read(PIECE_BYTES):
        pass
    return inspection.read_facts() | values


class Measured(io.RawIOBase):
    """A readable file of the bytes that `take` returns, at most so many at a time, and none at the end."""

    def __init__(self, take: Callable[[int], bytes], *, name: str = "") -> None:
        self._take, self.name, self.size = take, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._take(min(len(buffer), PIECE_BYTES))
        self.size += len(piece)
        buffer[: len(piece)] = piece
        return len(piece)


class Inspection:
    """The reading of one object."""

    def __init__(self, chunks: Iterator[bytes], settings: InspectSettings, key: str = "") -> None:
        """`chunks`: the object as it is stored. Raises as reads of `content` do."""
        facts, head = settings.facts, b""
        while len(head) < 4 and (chunk := next(chunks, b"")):
            head += chunk
        self._settings, self._chunks, self._left = settings, chunks, memoryview(head)
        self._lines, self._last, self._sha256 = 0, b"\n", hashlib.sha256()
        self.fault: ObjectError | None = None
        """Why it could not be read on; what a function has made of that does not count."""
        inflates = settings.function or facts - {"size", "sha256"}
        self.encoding = find_encoding(head) if inflates else None
        self.stored = Measured(self._take_stored)
        self._file = open_inflated(self.stored, self.encoding)
        self.content = Measured(self._take_content, name=key)
        """What its bytes inflate to. Reads raise ContentFault, and any error of the chunks."""

    def call(self, function: Function) -> dict[str, Any]:
        """Return those values of what a function returns of the object that have columns.

        Raises ContentFault where it fails, or the content does.
        """
        try:
            returned: Any = function(io.BufferedReader(self.content, PIECE_BYTES))
            if not isinstance(returned, Mapping):
                raise TypeError(f"it returned {type(returned).__name__}, not a dict")
            named = cast("Mapping[str, Any]", returned)
            wanted = [name for name in self._settings.columns if name not in self._settings.facts]
            if missing := [name for name in wanted if name not in named]:
                raise LookupError(f"it returned {', '.join(map(str, named)) or 'nothing'}, but no {missing[0]}")
            values = {name: named[name] for name in wanted}
            if len(msgspec.json.encode(values, enc_hook=repr)) > MOST_VALUES_BYTES:
                raise ValueError(f"it returned more than {MOST_VALUES_BYTES} bytes")
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the object's failure
            words = f"the function failed with {describe_fault(error)}"
            raise self.fault or ContentFault("FunctionFailed", words) from None
        if self.fault is not None:
            raise self.fault
        return values

    def read_facts(self) -> dict[str, Any]:
        """Return the facts by name, `size` being that of what was read."""
        lines = self._lines + (self._last != b"\n")
        found = {"size": self.stored.size, "sha256": self._sha256.digest(), "encoding": self.encoding, "lines": lines}
        return {name: found[name] for name in self._settings.facts}

    def _take_stored(self, most_bytes: int) -> bytes:
        stored = self._left or memoryview(next(self._chunks, b""))
        piece, self._left = bytes(stored[:most_bytes]), stored[most_bytes:]
        if "sha256" in self._settings.facts:
            self._sha256.update(piece)
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
        settings, size = self._settings, self.content.size + len(piece)
        if self.encoding is not None and size > settings.max_inflated_bytes:
            words = f"it inflates to more than {settings.max_inflated_bytes} bytes (max_inflated_bytes)"
            raise ContentFault("InflatedTooLarge", words)
        if piece and "lines" in settings.facts:
            self._lines, self._last = self._lines + piece.count(b"\n"), piece[-1:]


def find_encoding(head: bytes) -> str | None:
    """Return the encoding of a body by its first four bytes, or more; None: it has none.

    Sources: RFC 1952, section 2.3.1, for the method and the reserved bits of gzip; RFC 8878, section 3.1.2, for
    skippable frames.
    """
    if head.startswith(b"\x1f\x8b\x08") and not any(flags & 0xE0 for flags in head[3:4]):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):
        return "zstd"
    return None


def open_inflated(stored: Measured, encoding: str | None) -> Any:
    """Return a file of what stored bytes inflate to. Raises ContentFault where zstd cannot be read here."""
    if encoding != "zstd":
        return stored if encoding is None else gzip.GzipFile(fileobj=stored)
    if ZSTD is None:
        raise ContentFault("UnknownEncoding", "zstd cannot be read here: install rowferry[inspect], or Python 3.14")
    return ZSTD.ZstdFile(stored, options={ZSTD.DecompressionParameter.window_log_max: WINDOW_LOG})
