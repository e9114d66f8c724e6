"""Servers that deviate from S3: no different object is overwritten, no row leads, no tag is lost."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest

from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.processes.small_parts import PART_BYTES, PLAN_BYTES, small_parts
from support.s3.buckets import fresh_buckets
from support.s3.deviations import WRITES, Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.objects import digest

LARGE_BYTES = PART_BYTES + 4096
TAGS = {"kind": "cat + dog"}

# Every pair of deviations meets in each of its four combinations, in eight servers.
# Source: the orthogonal array L8(2^7).
L8 = ("0000000", "0001111", "0110011", "0111100", "1010101", "1011010", "1100110", "1101001")


def make_deviations(bits: str) -> Deviations:
    """Return the deviations that the bits stand for: 0 as Amazon's server behaves."""
    on = [bit == "0" for bit in bits]
    return Deviations(
        if_none_match=frozenset(operation for operation, is_on in zip(WRITES, on, strict=False) if is_on),
        source_if_match=on[3],
        tagging_count=on[4],
        keeps_tags=frozenset({"CopyObject", *(("PutObject", "CreateMultipartUpload") if on[5] else ())}),
        completion_etag=on[6],
    )


MakeUneven = Callable[[Deviations, str], AbstractContextManager[Migration]]


@pytest.fixture
def make_uneven(make_migration: Callable[..., Migration]) -> MakeUneven:
    """Yield a migration whose worker meets these deviations; the test sees the same buckets without them."""

    @contextmanager
    def make(deviations: Deviations, transfer: str) -> Iterator[Migration]:
        with running_fakes(Deviations(), deviations) as (plain, uneven), fresh_buckets(plain) as buckets:
            migration = make_migration(buckets, buckets)
            migration.plan["migration"] |= {"transfer": transfer, "multipart_threshold_bytes": PLAN_BYTES}
            migration.plan["migration"]["max_attempts"] = 3
            migration.reach_through(uneven.endpoint_url)
            with small_parts(migration.folder):
                yield migration

    return make


def finish(migration: Migration, take_turn: Callable[[], bool]) -> None:
    """Enqueue, and work until nothing waits any more, however often a batch is tried again."""
    migration.enqueue()
    while "INIT" in migration.statuses():
        migration.make_due()
        while take_turn():
            pass


def explain(migration: Migration) -> str:
    """Return what a failing assertion can show."""
    return "; ".join(f"{each['key']}: {each['outcome']}, {each['error']}" for each in migration.failures())


def check_rows(migration: Migration, tagged: Mapping[str, str]) -> set[str]:
    """Hold each row against its object, its tags and what was told of it; return the ids of the rows that moved."""
    told = {failure["entry_id"] for failure in migration.failures()}
    moved = {row_id: key for row_id, key in migration.rows().items() if key and key.startswith(TO)}
    assert migration.rows().keys() - moved.keys() == told, explain(migration)
    for row_id, key in moved.items():
        assert digest(migration.production.read(key)) == digest(migration.bodies[row_id]), key
        assert migration.production.tags(key) == (tagged if key.endswith("tagged") else {}), key
    migration.check_balance()
    return {*moved}


@pytest.mark.by_day("*-stream", "1101001-server")
@pytest.mark.parametrize("transfer", ["server", "stream"])
@pytest.mark.parametrize("bits", L8)
def test_no_deviation_costs_an_object_a_row_or_a_tag(bits: str, transfer: str, make_uneven: MakeUneven) -> None:
    existing: dict[str, bytes] = {}
    with make_uneven(make_deviations(bits), transfer) as migration, migration.at_work() as take_turn:
        migration.fill(6)
        finish(migration, take_turn)  # from here on the worker knows what the server does with small objects
        for row_id, (name, size_bytes) in enumerate((("small", 100), ("large", LARGE_BYTES)), 1):
            for kind in ("different", "equal", "tagged"):
                body = os.urandom(size_bytes)
                migration.add(f"{row_id}0{len(kind)}", f"{name}-{kind}", body)
                if kind == "tagged":
                    migration.legacy.tag(f"{FROM}{name}-{kind}", TAGS)
                else:
                    existing[f"{TO}{name}-{kind}"] = body if kind == "equal" else os.urandom(size_bytes)
        for key, body in existing.items():
            migration.production.put(key, body)
        finish(migration, take_turn)
        assert [key for key, body in existing.items() if migration.production.read(key) != body] == []
        assert migration.production.open_uploads() == []
        left = {key for row_id, key in migration.rows().items() if row_id not in check_rows(migration, TAGS)}
        assert left == {f"{FROM}small-different", f"{FROM}large-different"}, explain(migration)


@pytest.mark.by_day("stream-HeadObject", "stream-PutObject")
@pytest.mark.parametrize(
    ("transfer", "operation"),
    [
        ("server", "CopyObject"),
        ("server", "UploadPartCopy"),
        ("stream", "PutObject"),
        ("stream", "UploadPart"),
        ("server", "CreateMultipartUpload"),
        ("server", "CompleteMultipartUpload"),
        ("stream", "CompleteMultipartUpload"),
        ("stream", "HeadObject"),
        ("server", "HeadObject"),
    ],
)
def test_no_row_follows_a_login_page(transfer: str, operation: str, make_uneven: MakeUneven) -> None:
    deviations = Deviations(login_page_for=operation)
    with make_uneven(deviations, transfer) as migration, migration.at_work() as take_turn:
        migration.fill(2)
        migration.add(9, "large", os.urandom(LARGE_BYTES))
        migration.enqueue()
        for _ in range(3):  # it is waited for as long as it takes, where nothing gets past it
            migration.make_due()
            while take_turn():
                pass
        moved = check_rows(migration, {})
        assert "9" not in moved or operation in {"CopyObject", "PutObject"}
        assert moved <= {"9"} or operation not in {"CopyObject", "PutObject"}


@pytest.mark.by_day("stream")
@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_a_head_without_a_length_is_no_empty_object(transfer: str, make_uneven: MakeUneven) -> None:
    deviations = Deviations(if_none_match=frozenset(), head_length=False)
    with make_uneven(deviations, transfer) as migration, migration.at_work() as take_turn:
        for row_id, (name, size_bytes) in enumerate((("small", 100), ("large", LARGE_BYTES)), 1):
            migration.add(row_id, name, os.urandom(size_bytes))
            migration.production.put(f"{TO}{name}", b"something else")
        migration.add(3, "free", os.urandom(LARGE_BYTES))
        finish(migration, take_turn)
        check_rows(migration, {})
        assert [migration.production.read(f"{TO}{name}") for name in ("small", "large")] == [b"something else"] * 2
