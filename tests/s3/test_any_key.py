"""Which keys are ours, and that any key that S3 allows, with any bytes behind it, arrives as it was sent."""

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowferry.keys import MAX_KEY_BYTES
from rowferry.plan_file import parse_plan
from rowferry.s3 import operations
from rowferry_cli.operate.left_uploads import is_ours
from support.s3.buckets import Buckets
from support.s3.clients import ask, clients_of
from support.s3.objects import digest, legacy_side, production_side

ROOM = 24
"""Bytes of a key that the test itself needs, to give each example a folder of its own."""
AWKWARD = st.sampled_from(["/", "//", ".", "..", "%", "%2F", "%00", "+", " ", "?", "#", "&", "=", ";", ":", "\\", "'"])
CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
KEYS = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=30),
    st.lists(st.one_of(AWKWARD, st.text(CHARACTERS, min_size=1, max_size=4)), min_size=1, max_size=8).map("".join),
    st.tuples(st.sampled_from("aé漢😀"), st.integers(900, MAX_KEY_BYTES)).map(lambda of: fill_up(*of)),
).filter(lambda key: len(key.encode()) <= MAX_KEY_BYTES - ROOM and key.split("/").count("..") < 2)
"""Keys that S3 takes: a key that climbs above the bucket is refused, and two steps up may."""
BODIES = st.binary(max_size=200)
NUMBERS = count()


def fill_up(character: str, most_bytes: int) -> str:
    """Return a key of so many bytes, of one character, cut into names that a file system takes."""
    width = len(character.encode())
    names = -(-most_bytes // 200)
    return "/".join([character * (190 // width)] * names)[: most_bytes // width]


def test_moto_gets_every_key_and_every_byte(moto_buckets: Buckets) -> None:
    keys = KEYS.filter(lambda key: "\n" not in key)  # moto answers 404: its routes take any character but that
    carry_all(moto_buckets, st.dictionaries(keys, BODIES, min_size=1, max_size=5))


def carry_all(buckets: Buckets, examples: st.SearchStrategy[dict[str, bytes]]) -> None:
    """Carry the objects of each example, over connections that serve all of them."""
    with clients_of(buckets) as (legacy, production):

        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(examples)
        def must_arrive(objects: dict[str, bytes]) -> None:
            check_arrival(buckets, legacy, production, objects)

        must_arrive()


def check_arrival(buckets: Buckets, legacy: Any, production: Any, objects: dict[str, bytes]) -> None:
    """Carry objects by copy and by stream, to keys with the same bytes behind another prefix."""
    old, new = legacy_side(buckets), production_side(buckets)
    number = next(NUMBERS)
    for key, body in objects.items():
        old.put(f"image/{number}/{key}", body)
    for key in objects:
        carry(legacy, production, buckets.legacy, f"image/{number}/{key}", f"{number}/{key}")
    for key, body in objects.items():
        for way in ("copied", "sent"):
            assert digest(new.read(f"{way}/{number}/{key}")) == digest(body), (way, key)
            new.delete(f"{way}/{number}/{key}")  # one by one: not every key can be written in XML
        old.delete(f"image/{number}/{key}")


def carry(legacy: Any, production: Any, bucket: str, source: str, rest: str) -> None:
    copy = operations.copy_object(f"copied/{rest}", source_bucket=bucket, source_key=source, if_none_match=False)
    assert ask(production, copy).error is None
    read = ask(legacy, operations.get_object("legacy", source))
    assert read.error is None
    put = operations.put_object(f"sent/{rest}", read.body, headers=[], if_none_match=True)
    assert ask(production, put).error is None


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_the_longest_keys_are_as_long_as_s3_allows(character: str, buckets: Buckets) -> None:
    longest = fill_up(character, MAX_KEY_BYTES - 7)
    rest = MAX_KEY_BYTES - 7 - len(longest.encode())
    key = "copied/" + longest + "x" * rest
    assert len(key.encode()) == MAX_KEY_BYTES
    legacy_side(buckets).put("image", b"the body")
    with clients_of(buckets) as (_, production):
        copy = operations.copy_object(key, source_bucket=buckets.legacy, source_key="image", if_none_match=False)
        assert ask(production, copy).error is None
    assert production_side(buckets).read(key) == b"the body"


def ours(key: str, *prefixes: tuple[str, str], production: str = "new") -> bool:
    """Return whether workers of a plan with these prefixes, legacy and production, write the key."""
    tables: list[dict[str, Any]] = [
        {"table": f"public.t{number}", "id": "id", "key": "path", "from": before, "to": after}
        for number, (before, after) in enumerate(prefixes)
    ]
    plan = {"migration": {"name": "m"}, "legacy": {"bucket": "old"}, "production": {"bucket": production}}
    return is_ours(key, parse_plan({**plan, "entries": tables}, "of the test"))


NEW, DEEP, CHAIN = [("image/", "avatar/")], [("a/", "a/new/")], [("a/", "b/"), ("b/", "c/")]
OWN = (
    ("avatar/1", NEW, "new", True),
    ("image/1", NEW, "new", False),
    ("avatar", NEW, "new", False),
    ("other/avatar/1", NEW, "new", False),
    ("a/new/1", DEEP, "new", True),  # of two prefixes the longer one counts
    ("a/1", DEEP, "new", False),
    ("b/1", CHAIN, "new", True),
    ("b/1", CHAIN, "old", False),  # in one bucket what is legacy for any table is not ours
)
"""Keys, with the prefixes of a plan and its production bucket, and whether workers of that plan write them."""


def test_the_production_prefix_is_ours_unless_it_is_legacy_for_a_table(subtests: pytest.Subtests) -> None:
    for key, prefixes, production, expected in OWN:
        with subtests.test(f"{key} {prefixes} {production}"):
            assert ours(key, *prefixes, production=production) == expected
