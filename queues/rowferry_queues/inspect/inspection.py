"""What is computed of one object while its bytes come in, a little on the event loop, the rest beside it. No I/O."""

import hashlib
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from typing import Any

import msgspec

from rowferry.errors import MigrationFault
from rowferry_queues.inspect import content_types, inflating
from rowferry_queues.inspect.inflating import ContentFault
from rowferry_queues.inspect.spec import MAX_INFLATED_BYTES, MiB
from rowferry_worker.compute import compute

IMAGE_HEAD_BYTES = 256 * 1024
"""Where an image tells its size: behind EXIF data and colour profiles, of 64 KiB at most each."""
MOST_PIXELS = 2**31 - 1
"""The largest width or height of an image: PNG allows no more, and `integer` holds it. Source: PNG, section 11.2.1."""
RATIO_FROM_BYTES = 16 * MiB
"""What inflates to less is no bomb."""
DIMENSIONS = frozenset({"width", "height"})
OF_HEAD = DIMENSIONS | {"size", "type", "encoding"}
"""What the first bytes tell, and the headers that come with them."""


class Computed(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be computed, within which bounds."""

    facts: frozenset[str]
    reads_content: bool = False
    """Whether the inflated bytes are read by somebody else as well."""
    may_inflate: bool = True
    max_inflated_bytes: int = MAX_INFLATED_BYTES
    max_ratio: float = 1000.0

    @property
    def head_bytes(self) -> int:
        """How many bytes of the content have to be kept, from the first on."""
        if self.facts & DIMENSIONS:
            return IMAGE_HEAD_BYTES
        return content_types.HEAD_BYTES if "type" in self.facts else 0

    @property
    def is_of_head(self) -> bool:
        """Whether these first bytes, and those that tell the encoding, are enough."""
        return not self.reads_content and self.facts <= OF_HEAD


class Inspection:
    """Takes the bytes of one object as they are stored, and computes its facts."""

    def __init__(self, computed: Computed, told_encoding: str = "") -> None:
        """`told_encoding`: the object's Content-Encoding."""
        self._computed, facts = computed, computed.facts
        self._told = told_encoding
        needs_content = facts - {"size", "sha256"} or computed.reads_content
        self._may_inflate = computed.may_inflate and bool(needs_content)
        self._inflater: inflating.Inflater | None = None
        self._undecided: bytes | None = b"" if self._may_inflate else None
        """The first bytes, as long as there are too few to tell the encoding."""
        self._digest = hashlib.sha256() if "sha256" in facts else None
        self._content_digest = hashlib.sha256() if "inflated_sha256" in facts else None
        self._counts_lines = "lines" in facts
        self._head = bytearray()
        self._head_bytes, self._is_of_head = computed.head_bytes, computed.is_of_head
        self.is_complete = False
        """Whether the facts are known before the object's end: no more need be fed."""
        self._newlines, self._last = 0, b"\n"
        self.size = self.inflated_size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes, and yield their content, inflated where it is compressed. Raises ContentFault.

        They are computed with as the pieces are taken: all of them must be.
        """
        self.size += len(data)
        if self._digest is not None:
            self._digest.update(data)
        if self._undecided is not None:
            data = self._undecided = self._undecided + data
            if len(data) < inflating.HEAD_BYTES:
                return
            self._decide(data)
        yield from self._take(data)

    def end(self, *, is_cut: bool = False) -> Iterator[bytes]:
        """Yield the rest of the content: the object has ended. Raises ContentFault where that is too early.

        `is_cut`: only the beginning of the object was asked for.
        """
        if self._undecided is not None:
            data = self._undecided
            self._decide(data)
            yield from self._take(data)
        if self._inflater is not None and not is_cut and not self.is_complete:
            self._inflater.end()

    def read_facts(self, size: int | None = None) -> dict[str, Any]:
        """Return the facts, by name; `size`: that of the object, where not all of it was fed."""
        wanted, head = self._computed.facts, bytes(self._head)
        found: dict[str, Any] = {"size": self.size if size is None else size, "inflated_size": self.inflated_size}
        found["encoding"] = self._inflater and self._inflater.encoding
        found["lines"] = self._newlines + (self._last != b"\n")
        if self._digest is not None:
            found["sha256"] = self._digest.hexdigest()
        if self._content_digest is not None:
            found["inflated_sha256"] = self._content_digest.hexdigest()
        if "type" in wanted:
            found["type"] = content_types.find_type(head[: content_types.HEAD_BYTES])
        if wanted & DIMENSIONS:
            found["width"], found["height"] = measure_image(head)
        return {name: found[name] for name in wanted}

    def _decide(self, head: bytes) -> None:
        self._undecided = None
        encoding = inflating.find_encoding(head[: inflating.HEAD_BYTES], self._told)
        self._inflater = None if encoding is None else inflating.Inflater(encoding)

    def _take(self, data: bytes) -> Iterator[bytes]:
        for piece in (data,) if self._inflater is None else self._inflater.inflate(data):
            self._compute(piece)
            yield piece
            if self.is_complete:
                return

    def _compute(self, piece: bytes) -> None:
        self.inflated_size += len(piece)
        if self._inflater is not None:
            self._refuse_bomb()
        if len(self._head) < self._head_bytes:
            self._head += piece[: self._head_bytes - len(self._head)]
        if self._is_of_head:
            self.is_complete = len(self._head) >= self._head_bytes
        if self._content_digest is not None:
            self._content_digest.update(piece)
        if self._counts_lines and piece:
            self._newlines += piece.count(b"\n")
            self._last = piece[-1:]

    def _refuse_bomb(self) -> None:
        """Raise ContentFault where the object has inflated to more than it may."""
        bounds = self._computed
        if self.inflated_size > bounds.max_inflated_bytes:
            words = f"it inflates to more than {bounds.max_inflated_bytes} bytes (max_inflated_bytes)"
            raise ContentFault("InflatedTooLarge", words)
        if self.inflated_size > max(RATIO_FROM_BYTES, bounds.max_ratio * self.size):
            words = f"it inflates to more than {bounds.max_ratio:g} times its size (max_ratio)"
            raise ContentFault("InflatedTooLarge", words)


def measure_image(head: bytes) -> tuple[int | None, int | None]:
    """Return width and height in whole pixels of what begins with these bytes; None where it is no image that says so.

    It may take long where an image lies: half a second for a number of 200,000 digits.
    """
    try:
        imagesize: Any = import_module("imagesize")  # an extra
    except ImportError as error:
        words = f"width and height need the package imagesize ({error})"
        raise MigrationFault(f"{words}: install rowferry[inspect].") from error
    width, height = imagesize.get(BytesIO(head))  # of drawings, with fractions
    return (round(width), round(height)) if 0 <= width <= MOST_PIXELS and 0 <= height <= MOST_PIXELS else (None, None)


INLINE_BYTES = 256 * 1024
"""How much content is computed with on the event loop: 0.3 ms to 1 ms of inflating, SHA-256 and counting lines."""
PIECE_COST_BYTES = 2 * 1024
"""What a piece without content counts for: the beginning of another member."""


def read_whole(inspection: Inspection, body: bytes) -> Iterator[bytes]:
    """Yield the content of a whole body."""
    yield from inspection.feed(body)
    yield from inspection.end()


async def exhaust(pieces: Iterator[bytes], inline_bytes: int) -> None:
    """Take all pieces: the first of them, up to `inline_bytes`, here, and the others beside the event loop."""
    while inline_bytes > 0:
        piece = next(pieces, None)
        if piece is None:
            return
        inline_bytes -= count_cost(piece)
    await compute(_take_all, pieces)


def count_cost(piece: bytes) -> int:
    """Return what a piece costs of INLINE_BYTES."""
    return len(piece) or PIECE_COST_BYTES


def _take_all(pieces: Iterator[bytes]) -> None:
    for _ in pieces:
        pass
