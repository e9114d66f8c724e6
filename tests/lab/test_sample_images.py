"""Simulated pictures are real PNGs, each its own, under keys of the right form, shared out to the last."""

import struct
import zlib
from itertools import count, islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import UsageError
from rowferry.plan import Entries
from rowferry.plan_file import parse_plan
from rowferry_lab.simulated.images import draw_images, draw_png
from rowferry_lab.simulated.tables import list_tables, share_rows
from support.entries.key_forms import form_of_key


def test_a_picture_is_a_valid_png_and_no_two_are_the_same() -> None:
    assert draw_png(1, Random(1)) != draw_png(2, Random(1))
    png = draw_png(17, Random(1))
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    found, position = {}, 8
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        name, body = png[position + 4 : position + 8], png[position + 8 : position + 8 + length]
        assert struct.pack(">I", zlib.crc32(name + body)) == png[position + 8 + length : position + 12 + length]
        found[name] = body
        position += 12 + length
    assert list(found) == [b"IHDR", b"tEXt", b"IDAT", b"IEND"]
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    assert len(zlib.decompress(found[b"IDAT"])) == height * (1 + 3 * width)


def test_keys_have_the_form_of_their_side() -> None:
    entries = Entries("t", "id", "k", "image/", "image/new/")
    for picture in islice(draw_images(entries, count(1), Random(1)), 20):
        assert form_of_key(picture.key, entries) == picture.side


def test_prefixes_that_allow_no_such_key_are_refused() -> None:
    entries = Entries("t", "id", "k", "avatar", "")
    with pytest.raises(UsageError, match="No simulated production key"):
        next(draw_images(entries, count(1), Random(1)))


@given(st.integers(1, 10_000), st.integers(1, 5))
def test_the_rows_are_shared_out_to_the_last(number: int, tables: int) -> None:
    entries = [{"table": f"t{n}", "id": "id", "key": "k", "from": "a/", "to": "b/"} for n in range(tables)]
    sides = {"legacy": {"bucket": "a"}, "production": {"bucket": "b"}}
    plan = parse_plan({"migration": {"name": "x"}, **sides, "entries": entries}, "of the test")
    shares = [share for _, share in share_rows(number, list_tables(plan))]
    assert sum(shares) == number
    assert max(shares) - min(shares) <= 1
