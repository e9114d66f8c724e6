"""Inflates gzip and zstd piece by piece. No I/O, and no more in memory than a window and a piece."""

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from rowferry.errors import ObjectError


class ContentFault(ObjectError):
    """The bytes came as they are, but they are corrupt, cut short, too many, or the function fails with them."""


PIECE_BYTES = 64 * 1024
"""What is inflated at once."""
TAKEN_BYTES = 16 * 1024
"""What is inflated from at once: zlib copies what it leaves of that, for each piece."""
WINDOW_LOG = 23
WINDOW_BYTES = 1 << WINDOW_LOG
"""The most that a zstd frame may look back: what every decoder should support. Source: RFC 8878, section 3.1.1.1.2."""
MAGIC = {"gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd"}
"""The third byte of gzip is its only method, deflate. Source: RFC 1952, section 2.3.1."""
RESERVED_FLAGS = 0xE0
"""Bits of the fourth byte of gzip that are zero. Source: the same."""
SKIPPABLE = b"\x2a\x4d\x18"
"""The end of the magic number of a frame without content. Source: RFC 8878, section 3.1.2."""
HEAD_BYTES = 4
"""How many bytes tell a format."""
NAMES = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}
"""Values of Content-Encoding that are inflated."""


class Inflater:
    """Inflates one body: members or frames that follow one another."""

    def __init__(self, encoding: str) -> None:
        """`encoding`: gzip or zstd. Raises ContentFault where zstd cannot be read here."""
        self.encoding = encoding
        self._start: Callable[[], Any] = _start_gzip if encoding == "gzip" else _find_zstd()
        self._member: Any = self._start()
        self._has_begun = False
        """Whether a byte of the member has come."""
        self._members = 0

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes inflate to, in pieces of at most PIECE_BYTES, an empty one after each member.

        Raises ContentFault.
        """
        place = 0
        while place < len(data):
            taken = data[place : place + TAKEN_BYTES]
            place += len(taken)
            if not self._has_begun and self._members and self.encoding == "gzip":
                taken = taken.lstrip(b"\0")  # padding, as tapes have it; gzip passes over it, too
            if not taken:
                continue
            self._has_begun = True
            yield from self._inflate_member(taken)
            if self._member.eof:
                place -= len(self._member.unused_data)
                self._member, self._has_begun = self._start(), False
                self._members += 1
                yield b""  # a moment to go on elsewhere: thousands of members may have no content

    def end(self) -> None:
        """Raise ContentFault where the body ends within a member, or has none."""
        if self._has_begun or not self._members:
            words = f"its {self.encoding} data end before their end, after {self._members} whole members"
            raise ContentFault("TruncatedContent", words)

    def _inflate_member(self, data: bytes) -> Iterator[bytes]:
        while True:
            try:
                piece: bytes = self._member.decompress(data, PIECE_BYTES)
            except (zlib.error, EOFError, ValueError, *_list_errors()) as error:
                words = str(error).strip() or type(error).__name__
                raise ContentFault("CorruptContent", f"it is no {self.encoding}: {words}") from None
            if piece:
                yield piece
            if self._member.eof:
                return
            data = self._rest()
            if not data and len(piece) < PIECE_BYTES:
                return

    def _rest(self) -> bytes:
        """Return what zlib hands back; a frame of zstd keeps it."""
        return self._member.unconsumed_tail if self.encoding == "gzip" else b""


def find_encoding(head: bytes, told: str) -> str | None:
    """Return the encoding of a body by its first bytes, HEAD_BYTES of them if there are so many; None: it has none.

    `told`: the object's Content-Encoding. Raises ContentFault where it names one, and the bytes another.
    """
    found = _recognise(head)
    named = NAMES.get(told.strip().lower())
    if named is not None and head and found != named:
        raise ContentFault("CorruptContent", f"its Content-Encoding is {named}, but its bytes are not")
    return found


def _recognise(head: bytes) -> str | None:
    if head.startswith(MAGIC["gzip"]) and not any(flags & RESERVED_FLAGS for flags in head[3:4]):
        return "gzip"
    return "zstd" if needs_window(head) else None


def needs_window(head: bytes) -> bool:
    """Return whether a body is zstd by its first bytes, and so may keep a window of WINDOW_BYTES."""
    return head.startswith(MAGIC["zstd"]) or (head[1:4] == SKIPPABLE and head[0] & 0xF0 == 0x50)


def _start_gzip() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


def _find_zstd() -> Callable[[], Any]:
    zstd = _import_zstd()
    if zstd is None:
        words = "zstd cannot be read here: install rowferry[inspect], or Python 3.14"
        raise ContentFault("UnknownEncoding", words)
    options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
    return lambda: zstd.ZstdDecompressor(options=options)


def can_read_zstd() -> bool:
    """Return whether zstd can be read here."""
    return _import_zstd() is not None


@cache
def _import_zstd() -> Any:
    """Return the module of the standard library, since Python 3.14, or the same for older ones; None without it."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def _list_errors() -> tuple[type[Exception], ...]:
    zstd = _import_zstd()
    return () if zstd is None else (zstd.ZstdError,)
