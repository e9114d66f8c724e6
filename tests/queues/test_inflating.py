"""gzip and zstd are inflated as they come, whatever is corrupt or a bomb is refused; types by how bytes begin."""

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry_queues.inspect.content import PIECE_BYTES, ContentFault, Inspection, find_encoding
from rowferry_queues.inspect.content_types import HEAD_BYTES, SIGNATURES, UNKNOWN, find_type
from rowferry_queues.inspect.spec import FACTS, InspectSettings, MiB
from support.queue.zstd_module import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": lambda data: gzip.compress(data, mtime=0), "zstd": zstd.compress}
ENCODINGS = st.sampled_from(sorted(PACK))
CONTENTS = st.binary(max_size=300) | st.builds(
    lambda piece, times: piece * times, st.binary(max_size=20), st.integers(0, 20_000)
)
MEMBERS = st.lists(CONTENTS, min_size=1, max_size=4)
CUTS = st.lists(st.integers(1, 50_000), max_size=8)
ALL = {*FACTS} - {"width", "height"}


def of(facts: Iterable[str] = ALL, **settings: Any) -> InspectSettings:
    """Return settings that ask for these facts."""
    return InspectSettings(columns={name: name for name in facts}, **settings)


def cut(data: bytes, lengths: list[int]) -> Iterator[bytes]:
    """Yield the data in chunks of these lengths, and the rest."""
    for length in lengths:
        if data:
            yield data[:length]
        data = data[length:]
    if data:
        yield data


def take(chunks: Iterator[bytes], settings: InspectSettings | None = None) -> tuple[bytes, Any]:
    """Read an object to its end, and return its content and facts; no piece is larger than it may be."""
    inspection = Inspection(chunks, settings or of(), "key")
    pieces = list(iter(lambda: inspection.content.read(2 * PIECE_BYTES), b""))
    assert max(map(len, pieces), default=0) <= PIECE_BYTES
    return b"".join(pieces), inspection.read_facts()


@given(ENCODINGS, MEMBERS, CUTS)
def test_members_are_inflated_however_they_are_cut(encoding: str, members: list[bytes], cuts: list[int]) -> None:
    stored, content = b"".join(map(PACK[encoding], members)), b"".join(members)
    found, facts = take(cut(stored, cuts))
    assert found == content
    assert facts["size"] == len(stored)
    assert facts["inflated_size"] == len(content)
    assert facts["sha256"] == hashlib.sha256(stored).digest()
    assert facts["inflated_sha256"] == hashlib.sha256(content).digest()
    assert facts["lines"] == content.count(b"\n") + (content[-1:] not in {b"", b"\n"})
    assert facts["encoding"] == encoding


@given(st.binary(max_size=2000).filter(lambda data: find_encoding(data[:4]) is None), CUTS)
def test_what_is_not_compressed_passes_as_it_is(data: bytes, cuts: list[int]) -> None:
    found, facts = take(cut(data, cuts))
    assert found == data
    assert (facts["size"], facts["inflated_size"], facts["encoding"]) == (len(data), len(data), None)


@given(ENCODINGS, MEMBERS, CUTS, st.data())
def test_a_body_that_is_cut_short_is_refused(
    encoding: str, members: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    """Of a further member two bytes at least are there, so that it is known for one."""
    packed = [PACK[encoding](member) for member in members]
    stored = b"".join(packed)
    ends = {sum(map(len, packed[:number])) + more for number in range(len(packed) + 1) for more in (0, 1)}
    length = data.draw(st.integers(4, len(stored) - 1).filter(lambda length: length not in ends))
    with pytest.raises(ContentFault, match="TruncatedContent"):
        take(cut(stored[:length], cuts))


@given(ENCODINGS, CONTENTS, st.data())
def test_a_corrupt_body_is_refused_or_harmless(encoding: str, content: bytes, data: st.DataObject) -> None:
    """Nothing but ContentFault ever comes of it; a changed time stamp in a header changes nothing."""
    stored = bytearray(PACK[encoding](content))
    place = data.draw(st.integers(4, len(stored) - 1))
    stored[place] ^= data.draw(st.integers(1, 255))
    outcome = try_to_take(bytes(stored))
    if isinstance(outcome, ContentFault):
        assert outcome.code in {"CorruptContent", "TruncatedContent", "InflatedTooLarge"}
        assert not outcome.retryable
    elif encoding == "gzip":  # each member of which has a checksum; not every frame of zstd has one
        assert outcome == content


def try_to_take(stored: bytes) -> bytes | ContentFault:
    try:
        return take(iter([stored]))[0]
    except ContentFault as fault:
        return fault


SKIPPABLE = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
PACKED = gzip.compress(b"content")
READ: dict[str, tuple[bytes, InspectSettings, bytes]] = {
    "zeros are padding": (PACKED + b"\0" * 100 + PACKED + b"\0" * 10, of(), b"contentcontent"),
    "a skippable frame has no content": (SKIPPABLE + zstd.compress(b"content"), of(), b"content"),
    "nothing has no encoding": (b"", of(), b""),
    "corrupt, and not to be inflated for these": (PACKED[:-3], of({"size", "sha256"}), PACKED[:-3]),
    "corrupt, and not to be inflated at all": (PACKED[:-3], of({"lines"}, inflate="never"), PACKED[:-3]),
    "another method than gzip's": (b"\x1f\x8b\x07\0rest", of(), b"\x1f\x8b\x07\0rest"),
    "reserved flags of gzip": (b"\x1f\x8b\x08\xe0rest", of(), b"\x1f\x8b\x08\xe0rest"),
    "merely begins like gzip": (b"\x1f\x8bzzrest", of(), b"\x1f\x8bzzrest"),
    "thousands of empty members": (gzip.compress(b"") * 3000, of(), b""),
    "thousands of empty frames": (zstd.compress(b"") * 3000, of(), b""),
}
"""What is stored, what is asked for, and the content. Encrypted objects begin like gzip once in 65,536 times."""


def test_odd_bodies_are_read(subtests: pytest.Subtests) -> None:
    for name, (stored, settings, content) in READ.items():
        with subtests.test(name):
            assert take(iter([stored] if stored else []), settings)[0] == content


def pack_wide() -> bytes:
    """Return a frame that looks back further than every decoder has to."""
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 25})
    return packer.compress(bytes(range(256)) * 200_000) + packer.flush()


def test_odd_bodies_are_refused(subtests: pytest.Subtests) -> None:
    for stored, words in ((PACKED + b"garbage", "CorruptContent: it is no gzip"), (pack_wide(), "CorruptContent")):
        with subtests.test(words), pytest.raises(ContentFault, match=words):
            take(iter([stored]))


@pytest.mark.parametrize("encoding", PACK)
def test_a_bomb_is_refused_before_it_has_gone_off(encoding: str) -> None:
    stored = PACK[encoding](bytes(200 * MiB))
    for settings, words, most_bytes in (
        (of({"lines"}, max_inflated_bytes=32 * MiB), r"(33554432 bytes|1000 times)", 32 * MiB),
        (of({"lines"}, max_ratio=100), "100 times its size", 16 * MiB + 100 * len(stored)),
    ):
        bounded = Inspection(iter([stored]), settings)
        with pytest.raises(ContentFault, match=f"InflatedTooLarge: it inflates to more than {words}"):
            bounded.content.readall()
        assert bounded.content.size <= most_bytes + PIECE_BYTES


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
