"""gzip and zstd are inflated as they come, however they are cut; what is corrupt, cut short or a bomb is refused."""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry_queues.inspect import inflating
from rowferry_queues.inspect.inflating import ContentFault
from rowferry_queues.inspect.inspection import Computed, Inspection
from rowferry_queues.inspect.spec import FACTS, MiB
from support.queue.zstd_module import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": lambda data: gzip.compress(data, mtime=0), "zstd": zstd.compress}
ENCODINGS = st.sampled_from(sorted(PACK))
CONTENTS = st.binary(max_size=300) | st.builds(
    lambda piece, times: piece * times, st.binary(max_size=20), st.integers(0, 20_000)
)
MEMBERS = st.lists(CONTENTS, min_size=1, max_size=4)
CUTS = st.lists(st.integers(1, 50_000), max_size=8)
ALL = Computed(facts=frozenset(FACTS) - {"width", "height"})


def cut(data: bytes, lengths: list[int]) -> Iterator[bytes]:
    """Yield the data in chunks of these lengths, and the rest."""
    for length in lengths:
        yield data[:length]
        data = data[length:]
    yield data


def take(inspection: Inspection, chunks: Iterator[bytes]) -> bytes:
    """Let an object's bytes through, and return its content; no piece is larger than it may be."""
    pieces = [piece for chunk in chunks for piece in inspection.feed(chunk)]
    pieces += inspection.end()
    return b"".join(pieces)


@given(ENCODINGS, MEMBERS, CUTS)
def test_members_are_inflated_however_they_are_cut(encoding: str, members: list[bytes], cuts: list[int]) -> None:
    stored, content = b"".join(map(PACK[encoding], members)), b"".join(members)
    inspection = Inspection(ALL)
    assert take(inspection, cut(stored, cuts)) == content
    facts = inspection.read_facts()
    assert facts["size"] == len(stored)
    assert facts["inflated_size"] == len(content)
    assert facts["sha256"] == hashlib.sha256(stored).hexdigest()
    assert facts["inflated_sha256"] == hashlib.sha256(content).hexdigest()
    assert facts["lines"] == content.count(b"\n") + (content[-1:] not in {b"", b"\n"})
    assert facts["encoding"] == encoding


@given(st.binary(max_size=2000).filter(lambda data: inflating.find_encoding(data[:4], "") is None), CUTS)
def test_what_is_not_compressed_passes_as_it_is(data: bytes, cuts: list[int]) -> None:
    inspection = Inspection(ALL)
    assert take(inspection, cut(data, cuts)) == data
    facts = inspection.read_facts()
    assert (facts["size"], facts["inflated_size"], facts["encoding"]) == (len(data), len(data), None)


@given(ENCODINGS, MEMBERS, CUTS, st.data())
def test_a_body_that_is_cut_short_is_refused(
    encoding: str, members: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    packed = [PACK[encoding](member) for member in members]
    stored = b"".join(packed)
    ends = {sum(map(len, packed[:number])) for number in range(len(packed) + 1)}
    length = data.draw(st.integers(4, len(stored) - 1).filter(lambda length: length not in ends))
    with pytest.raises(ContentFault, match="TruncatedContent"):
        take(Inspection(ALL), cut(stored[:length], cuts))


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
        return take(Inspection(ALL), iter([stored]))
    except ContentFault as fault:
        return fault


def test_garbage_behind_the_last_member_is_refused_and_zeros_are_padding() -> None:
    stored = gzip.compress(b"content")
    assert take(Inspection(ALL), iter([stored + b"\0" * 100, b"\0" * 10])) == b"content"
    assert take(Inspection(ALL), iter([stored + b"\0" * 100 + stored])) == b"content" * 2
    with pytest.raises(ContentFault, match="CorruptContent: it is no gzip"):
        take(Inspection(ALL), iter([stored + b"garbage"]))


@pytest.mark.parametrize("encoding", PACK)
def test_a_bomb_is_refused_before_it_has_gone_off(encoding: str) -> None:
    stored = PACK[encoding](bytes(200 * MiB))
    bounded = Computed(facts=frozenset({"lines"}), max_inflated_bytes=32 * MiB)
    inspection = Inspection(bounded)
    with pytest.raises(ContentFault, match=r"InflatedTooLarge: it inflates to more than (33554432 bytes|1000 times)"):
        take(inspection, iter([stored]))
    assert inspection.inflated_size <= 32 * MiB + inflating.PIECE_BYTES
    ratio = Inspection(Computed(facts=frozenset({"lines"}), max_ratio=100))
    with pytest.raises(ContentFault, match="100 times its size"):
        take(ratio, iter([stored]))
    assert ratio.inflated_size <= 16 * MiB + 100 * len(stored) + inflating.PIECE_BYTES


def test_a_frame_that_needs_a_larger_window_is_refused() -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 25})
    stored = packer.compress(bytes(range(256)) * 200_000) + packer.flush()
    with pytest.raises(ContentFault, match="CorruptContent"):
        take(Inspection(ALL), iter([stored]))


def test_the_encoding_that_is_told_must_be_that_of_the_bytes() -> None:
    packed = gzip.compress(b"content")
    assert take(Inspection(ALL, "gzip"), iter([packed])) == b"content"
    assert take(Inspection(ALL, "gzip"), iter([])) == b""
    assert take(Inspection(ALL, "br"), iter([b"bytes"])) == b"bytes"
    for told in ("gzip", "x-gzip", "zstd"):
        with pytest.raises(ContentFault, match="Content-Encoding"):
            take(Inspection(ALL, told), iter([b"plain"]))


def test_nothing_is_inflated_that_nobody_asked_for() -> None:
    corrupt = gzip.compress(b"content")[:-3]
    for computed in (
        Computed(facts=frozenset({"size", "sha256"})),
        Computed(facts=frozenset({"lines"}), may_inflate=False),
    ):
        assert take(Inspection(computed), iter([corrupt])) == corrupt


def test_a_skippable_frame_has_no_content() -> None:
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    assert take(Inspection(ALL), iter([skippable + zstd.compress(b"content")])) == b"content"


def test_zlib_is_not_handed_more_than_it_copies_cheaply() -> None:
    """What it leaves of its input is copied for each piece: a large chunk that inflates well must not be quadratic."""
    stored = zlib.compress(bytes(64 * MiB), wbits=31)
    assert len(stored) > 3 * inflating.TAKEN_BYTES
    inspection = Inspection(Computed(facts=frozenset({"inflated_size"}), max_ratio=2000))
    for _ in inspection.feed(stored):
        pass
    assert inspection.read_facts() == {"inflated_size": 64 * MiB}
