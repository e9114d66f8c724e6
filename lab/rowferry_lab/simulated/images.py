"""Small valid PNGs of random content, no two alike, with the headers that a web application would set."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rowferry.errors import UsageError
from rowferry.keys import has_form
from rowferry.plan import Entries, SideName

SIDE_PIXELS = 8
"""Images are squares of this many pixels: about 300 bytes."""
CACHE_CONTROL = "public, max-age=31536000"


@dataclass(frozen=True, slots=True)
class SampleImage:
    """One object to be: where it lies, its bytes, and the headers that it is written with."""

    side: SideName
    key: str
    body: bytes
    headers: tuple[tuple[str, str], ...]


def draw_images(entries: Entries, numbers: Iterator[int], rng: Random) -> Iterator[SampleImage]:
    """Yield one image a number, legacy or production by the toss of a coin; some with cache header, metadata, tags.

    Raises UsageError when keys of such names would not have the forms that the prefixes promise.
    """
    prefixes: dict[SideName, str] = {"legacy": entries.legacy_prefix, "production": entries.production_prefix}
    for side, prefix in prefixes.items():
        if not has_form(f"{prefix}avatar-1.png", entries, side):
            raise UsageError(f"No simulated {side} key can be made of `from` and `to` of {entries.label}.")
    for number in numbers:
        side = "legacy" if rng.random() < 0.5 else "production"
        yield SampleImage(side, f"{prefixes[side]}avatar-{number}.png", draw_png(number, rng), _describe(number, rng))


def draw_png(number: int, rng: Random) -> bytes:
    """Return a PNG of random colours whose comment is the number, so that no two are the same."""
    size = SIDE_PIXELS
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + rng.randbytes(3 * size) for _ in range(size))
    chunks = (
        (b"IHDR", header),
        (b"tEXt", f"Comment\0avatar {number}".encode("latin-1")),
        (b"IDAT", zlib.compress(rows, 1)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_make_chunk(name, content) for name, content in chunks)


def _make_chunk(name: bytes, content: bytes) -> bytes:
    """Return a chunk with its length and checksum. Source: PNG specification, section 5.3."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _describe(number: int, rng: Random) -> tuple[tuple[str, str], ...]:
    headers = [("Content-Type", "image/png")]
    if rng.random() < 0.5:
        headers.append(("Cache-Control", CACHE_CONTROL))
    if rng.random() < 0.25:
        headers.append(("x-amz-meta-artist", f"artist {number % 7}"))
    if rng.random() < 0.125:
        headers.append(("x-amz-tagging", f"album={number % 5}&kind=avatar"))
    return tuple(headers)
