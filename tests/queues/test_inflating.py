"""gzip and zstd are inflated as they come, however they are cut; what is corrupt, cut short or a bomb is refused."""

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry_queues.inspect.content import PIECE_BYTES, ContentFault, Inspection, find_encoding
from rowferry_queues.inspect.spec import FACTS, InspectSettings, MiB
from support.queue.zstd_module import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": lambda data: gzip.compress(data, mtime=0), "zstd": zstd.compress}
ENCODINGS = st.sampled_from(sorted(PACK))
CONTENTS = st.binary(max_size=300) | st.builds(
    lambda piece, times: piece * times, st.binary(max_size=20), st.integers(0, 20_000)
)
MEMBERS = st.lists(CONTENTS, min_size=1, max_size=4)
CUTS = st.lists(st.integers(1, 50_000), max_size=8)


def of(facts: Iterable[str] = FACTS, **settings: Any) -> InspectSettings:
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
    assert facts["sha256"] == hashlib.sha256(stored).digest()
    assert facts["lines"] == content.count(b"\n") + (content[-1:] not in {b"", b"\n"})
    assert facts["encoding"] == encoding


@given(st.binary(max_size=2000).filter(lambda data: find_encoding(data[:4]) is None), CUTS)
def test_what_is_not_compressed_passes_as_it_is(data: bytes, cuts: list[int]) -> None:
    found, facts = take(cut(data, cuts))
    assert found == data
    assert (facts["size"], facts["encoding"]) == (len(data), None)


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
    bounded = Inspection(iter([stored]), of({"lines"}, max_inflated_bytes=32 * MiB))
    with pytest.raises(ContentFault, match="InflatedTooLarge: it inflates to more than 33554432 bytes"):
        bounded.content.readall()
    assert bounded.content.size <= 32 * MiB + PIECE_BYTES
