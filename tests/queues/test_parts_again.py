"""A later pass of `parts` sends only the parts that have changed; the others are copied within the production side."""

import hashlib
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry_queues.parts.send import list_comparable
from support.entries.entry_table import TO
from support.entries.parts_site import (
    BODY,
    NAME,
    PART_BYTES,
    PARTS,
    REAL_PART_BYTES,
    Change,
    MakeMigration,
    Site,
    change_bytes,
    copy_again,
    copy_first,
    go_on,
    is_completion,
    real_body,
    site_on,
    site_on_fake,
)
from support.queue.queue_runs import outcomes
from support.s3.buckets import Buckets
from support.s3.request_log import LoggedRequest

ALL = {*range(1, PARTS + 1)}


@pytest.fixture
def site(make_migration: MakeMigration) -> Iterator[Site]:
    """A large object that an earlier pass has copied; its row has not followed."""
    with site_on_fake(make_migration, replace="own", then=[]) as site:
        copy_first(site)
        yield site


def test_an_unchanged_object_is_neither_read_nor_written(site: Site) -> None:
    copy_again(site, BODY)
    assert {seen.method for seen in site.log.seen} == {"HEAD"}
    assert outcomes(site.object_batches()) == {"kept": 1}
    site.check_arrived()


CHANGES: dict[str, tuple[Change, set[int]]] = {
    "a byte": (change_bytes(3 * PART_BYTES + 7), {4}),
    "both ends": (change_bytes(0, len(BODY) - 1), {1, PARTS}),
    "ten runs": (change_bytes(*(number * PART_BYTES + 99 for number in range(10))), {*range(1, 11)}),
    "an append": (lambda body: body + b"appended", {PARTS}),
    "a part more": (lambda body: body + bytes(PART_BYTES), {PARTS, PARTS + 1}),
    "a cut": (lambda body: body[: 5 * PART_BYTES + 1], {6}),
    "a cut at a part": (lambda body: body[: 5 * PART_BYTES], set()),
    "a shift": (lambda body: b"x" + body, ALL),
    "another": (lambda _: b"another object" * (PART_BYTES // 10), {1, 2}),
}


@pytest.mark.parametrize(("change", "sent"), CHANGES.values(), ids=CHANGES)
def test_only_changed_parts_are_sent(site: Site, change: Change, sent: set[int]) -> None:
    body = change(BODY)
    copy_again(site, body)
    site.check_arrived(body)
    assert site.sent() == Counter(sent)
    parts = -(-len(body) // PART_BYTES)
    assert site.copied() == Counter({*range(1, parts + 1)} - sent)
    counted = {"migrated": len(sent), "kept": parts - len(sent)}
    assert outcomes(site.part_batches()) == {name: count for name, count in counted.items() if count}
    assert site.migration.production.head(TO + NAME)["ContentType"] == "video/mp4"


def test_servers_copy_parts_in_place(make_migration: MakeMigration, buckets: Buckets) -> None:
    """On moto and versitygw, in parts of 5 MiB; the row follows in the same pass, and nothing is read for that."""
    with site_on(make_migration, buckets, replace="own") as site:
        site.migration.plan["queue"]["parts"]["then"] = []
        copy_first(site, real_body())
        site.migration.plan["queue"]["parts"]["then"] = ["migrate"]
        body = change_bytes(REAL_PART_BYTES)(real_body())
        copy_again(site, body)
        assert (site.sent(), site.copied()) == (Counter([2]), Counter([1, 3]))
        site.check_moved(body)


def test_a_completion_that_fails_for_a_moment_is_tried_again(site: Site) -> None:
    """The earlier copy still stands there then: that is no conflict."""
    body, refused = change_bytes(0)(BODY), 0

    def once(seen: LoggedRequest) -> bool:
        nonlocal refused
        refused += is_completion(seen)
        return is_completion(seen) and refused == 1

    with site.log.refusing(once, 500, "InternalError"):
        copy_again(site, body)
    assert refused == 2
    site.check_arrived(body)
    assert site.sent() == Counter([1])


def test_a_third_pass_compares_with_the_second(site: Site) -> None:
    first, second = change_bytes(0)(BODY), change_bytes(0, PART_BYTES)(BODY)
    copy_again(site, first)
    copy_again(site, second)
    assert site.sent() == Counter([2])
    site.check_arrived(second)


def test_without_being_asked_to_a_pass_replaces_no_earlier_copy(make_migration: MakeMigration) -> None:
    with site_on_fake(make_migration, then=[]) as site:
        copy_first(site)
        copy_again(site, change_bytes(0)(BODY))
        assert outcomes(site.object_batches()) == {"conflict": 1}
        assert site.migration.production.read(TO + NAME) == BODY
        assert site.begun() == 0


def test_a_copy_that_the_application_has_written_since_is_left_alone(site: Site) -> None:
    theirs = change_bytes(9)(BODY)
    site.migration.production.put(TO + NAME, theirs)
    copy_again(site, change_bytes(0)(BODY))
    assert outcomes(site.object_batches()) == {"conflict": 1}
    assert site.migration.production.read(TO + NAME) == theirs


@pytest.mark.parametrize("when", ["a part", "the end"])
def test_a_copy_that_the_application_writes_meanwhile_is_left_alone(site: Site, when: str) -> None:
    copy_again(site, change_bytes(0)(BODY), works=False)
    with site.migration.at_work(queues=["parts"]) as take_turn:
        take_turn()
        if when == "a part":
            site.migration.production.put(TO + NAME, b"of the application")
        while take_turn():
            if when == "the end" and len(site.recorded()) > PARTS - 5:
                site.migration.production.put(TO + NAME, b"of the application")
    site.work(again=3)
    assert site.migration.production.read(TO + NAME) == b"of the application"
    assert site.migration.production.open_uploads() == []
    assert outcomes(site.object_batches()) == {"conflict": 1}


def test_a_killed_pass_goes_on_where_it_was(site: Site) -> None:
    body = change_bytes(0, 7 * PART_BYTES)(BODY)
    copy_again(site, body, works=False)
    site.take_turns(2)
    site.log.seen.clear()
    go_on(site)
    assert (site.sent(), site.copied()) == (Counter([8]), Counter({5, 6, 7, *range(9, PARTS + 1)}))
    site.check_arrived(body)


def digests_of(body: bytes, part_bytes: int) -> bytes:
    parts = (body[first : first + part_bytes] for first in range(0, len(body), part_bytes))
    return b"".join(hashlib.md5(part).digest() for part in parts)


@given(st.binary(min_size=1, max_size=60), st.integers(1, 70), st.integers(1, 9), st.randoms())
def test_comparable_parts_have_the_same_range_in_both_objects(
    old: bytes, new_bytes: int, part_bytes: int, rand: random.Random
) -> None:
    """A part may be copied in place just where it has the digest told; then both objects hold the same bytes there."""
    new = bytes(old[i] if i < len(old) and rand.random() < 0.9 else rand.randrange(256) for i in range(new_bytes))
    known = list_comparable(digests_of(old, part_bytes), len(old), new_bytes, part_bytes)
    for number in range(1, -(-new_bytes // part_bytes) + 1):
        first, end = (number - 1) * part_bytes, min(number * part_bytes, new_bytes)
        is_shared = end <= len(old) and end - first == min(number * part_bytes, len(old)) - first
        assert (number in known) == is_shared
        if number in known:
            is_same = hashlib.md5(new[first:end]).hexdigest() == known[number]
            assert is_same == (new[first:end] == old[first:end])
