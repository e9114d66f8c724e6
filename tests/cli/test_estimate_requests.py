"""What `rowferry estimate` counts for an object is what a real worker sends: a change of one fails here."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from rowferry.s3.listing import ignore_progress
from rowferry_cli.estimating.measuring import Limits, Measured, measure_plan
from rowferry_cli.estimating.request_counts import CopyMode, RequestCounts, count_overhead, count_requests
from rowferry_lab.servers.fake_s3_api import Deviations
from support.entries.entry_table import FROM, TO
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration

PART_BYTES = 5 * 1024 * 1024
LARGE = bytes(2 * PART_BYTES + 7)
MEDIUM_BYTES = 9 * 1024 * 1024
WARM = 25
"""More objects than a worker asks for their tags before it stops asking."""
BUCKETS = {"HeadBucket", "ListObjectsV2"}
IGNORES = Deviations(if_none_match=frozenset())


def look(found: FakeMigration, keys: list[str]) -> Measured:
    pairs = [(FROM + key, TO + key) for key in keys]
    limits = Limits(
        within=timedelta(seconds=30), sample=len(pairs), parallel=1, copy=False, pace_is_known=True, workers=0
    )
    measured = measure_plan(found.migration.read_plan(), pairs, limits, ignore_progress)
    assert len(measured.sample.seen) == len(pairs)
    return measured


@dataclass(frozen=True)
class Case:
    """One object: `put` makes it; larger ones than `threshold` go in parts."""

    put: Callable[[Migration, str], object]
    threshold: int | None = None


def add_object(
    body: bytes = b"small", *, twin: bytes | None = None, **properties: Any
) -> Callable[[Migration, str], object]:
    """Return what adds a legacy object and, as `twin`, the production object that it would become."""

    def add(migration: Migration, key: str) -> None:
        migration.legacy.put(FROM + key, body, **properties)
        if twin is not None:
            migration.production.put(TO + key, twin)

    return add


def add_uploaded(migration: Migration, key: str) -> None:
    """Add an object that was uploaded in parts, so that its ETag is no MD5."""
    client, name = migration.legacy.client, {"Bucket": migration.legacy.bucket, "Key": FROM + key}
    upload = client.create_multipart_upload(**name)["UploadId"]
    part = client.upload_part(**name, UploadId=upload, PartNumber=1, Body=bytes(MEDIUM_BYTES))
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    client.complete_multipart_upload(**name, UploadId=upload, MultipartUpload=parts)


CASES = {
    "medium": Case(add_object(bytes(MEDIUM_BYTES))),
    "medium without a digest": Case(add_uploaded),
    "small": Case(add_object()),
    "empty": Case(add_object(b"")),
    "tagged": Case(add_object(Tagging="a=1&b=2")),
    "missing": Case(lambda migration, key: None),
    "identical": Case(add_object(b"same", twin=b"same")),
    "different": Case(add_object(b"one", twin=b"two")),
    "of another size": Case(add_object(b"one", twin=b"three")),
    "large": Case(add_object(LARGE), threshold=PART_BYTES),
    "of several parts": Case(add_object(bytes(16 * 1024**2)), threshold=8 * 1024**2),
    "large and tagged": Case(add_object(LARGE, Tagging="a=1"), threshold=PART_BYTES),
    "large and different": Case(add_object(LARGE, twin=b"two"), threshold=PART_BYTES),
    "small beside a threshold": Case(add_object(), threshold=PART_BYTES),
    "missing beside a threshold": Case(lambda migration, key: None, threshold=PART_BYTES),
}


def warm_up(migration: Migration, take_turn: Callable[[], bool]) -> None:
    """Let a worker find out all about its servers: by objects with tags, without, and already in production."""
    migration.add(99, "tagged", b"tagged", Tagging="a=1")
    migration.fill(2 * WARM, start=100)
    for number in range(100, 100 + WARM):
        migration.production.put(f"{TO}u{number}/me.png", migration.bodies[str(number)])
    migration.enqueue()
    assert take_turn()


@pytest.mark.parametrize("deviations", [Deviations(), IGNORES], ids=["honours", "ignores"])
@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("name", CASES)
def test_the_requests_of_an_object_are_those_of_a_worker(
    make_migration: Callable[..., Migration], name: str, server_side: bool, deviations: Deviations
) -> None:
    case = CASES[name]
    with fake_migration(make_migration, deviations, server_side=server_side) as found:
        migration = found.migration
        if case.threshold is not None:
            migration.plan["migration"]["multipart_threshold_bytes"] = case.threshold
        case.put(migration, "case")
        measured = look(found, ["case"])
        with migration.at_work(1) as take_turn:
            warm_up(migration, take_turn)
            migration.add_row(1000, f"{FROM}case")
            migration.enqueue()
            with found.counting() as sent:
                assert take_turn()
    mode = replace(measured.mode, honours_condition=bool(deviations.if_none_match), expects_existing=False)
    expected = count_requests(measured.sample.seen[0], mode)
    assert without_buckets(sent) == +expected


OF_PLAN = {
    "acl": {"acl": "public-read"},
    "content header": {"cache_control": "max-age=1"},
    "no tags": {"tags": "none"},
    "all": {"acl": "copy", "cache_control": "max-age=1", "storage_class": "STANDARD_IA", "tags": {"team": "a"}},
}
OF_PLAN_CASES = ("small", "tagged", "missing", "identical", "different", "large", "large and tagged")


@pytest.mark.parametrize("deviations", [Deviations(), IGNORES], ids=["honours", "ignores"])
@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("of_plan", OF_PLAN)
@pytest.mark.parametrize("name", OF_PLAN_CASES)
def test_what_the_plan_says_of_objects_costs_the_requests_of_a_worker(
    make_migration: Callable[..., Migration], name: str, of_plan: str, server_side: bool, deviations: Deviations
) -> None:
    """An object that is kept has its ACL already; what the server does with an ACL is known from earlier objects."""
    case = CASES[name]
    with fake_migration(make_migration, deviations, server_side=server_side) as found:
        migration = found.migration
        if case.threshold is not None:
            migration.plan["migration"]["multipart_threshold_bytes"] = case.threshold
        migration.plan["production"] |= OF_PLAN[of_plan]
        case.put(migration, "case")
        if name == "identical" and OF_PLAN[of_plan].get("acl") == "public-read":
            bucket = {"Bucket": migration.production.bucket, "Key": f"{TO}case"}
            migration.production.client.put_object_acl(**bucket, ACL="public-read")
        measured = look(found, ["case"])
        with migration.at_work(1) as take_turn:
            warm_up(migration, take_turn)
            migration.add(999, "before", LARGE if "large" in name else b"before", Tagging="a=1")
            migration.enqueue()
            assert take_turn()
            migration.add_row(1000, f"{FROM}case")
            migration.enqueue()
            with found.counting() as sent:
                assert take_turn()
    mode = replace(measured.mode, honours_condition=bool(deviations.if_none_match), expects_existing=False)
    assert without_buckets(sent) == +count_requests(measured.sample.seen[0], mode)


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("of_plan", OF_PLAN)
def test_a_whole_migration_with_properties_sends_what_was_estimated(
    make_migration: Callable[..., Migration], server_side: bool, of_plan: str
) -> None:
    with fake_migration(make_migration, server_side=server_side) as found:
        migration, names = found.migration, [f"{number}.png" for number in range(40)]
        migration.plan["production"] |= OF_PLAN[of_plan]
        for number, name in enumerate(names):
            migration.add(number, name, b"body of " + name.encode())
        measured = look(found, names)
        migration.enqueue()
        with found.counting() as sent:
            migration.work(parallel=1)
        assert migration.counts() == {"migrated": 40}
    assert without_buckets(sent) == +(
        sum_requests(measured, measured.mode) + count_overhead(40, measured.mode, any_tagged=False)
    )


def without_buckets(sent: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    return Counter({one: number for one, number in sent.items() if one[1] not in BUCKETS})


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("tagging", [{}, {"Tagging": "a=1"}], ids=["untagged", "tagged"])
def test_a_whole_migration_sends_what_was_estimated(
    make_migration: Callable[..., Migration], server_side: bool, tagging: dict[str, str]
) -> None:
    with fake_migration(make_migration, server_side=server_side) as found:
        migration, names = found.migration, [f"{number}.png" for number in range(40)]
        for number, name in enumerate(names):
            migration.add(number, name, b"body of " + name.encode(), **tagging)
        measured = look(found, names)
        migration.enqueue()
        with found.counting() as sent:
            migration.work(parallel=1)
        assert migration.counts() == {"migrated": 40}
    assert without_buckets(sent) == sum_requests(measured, measured.mode) + count_overhead(
        40, measured.mode, any_tagged=bool(tagging)
    )


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
def test_a_rerun_sends_what_was_estimated(make_migration: Callable[..., Migration], server_side: bool) -> None:
    """The first object tells a streaming worker that the others are there as well."""
    with fake_migration(make_migration, server_side=server_side) as found:
        migration, names = found.migration, [f"{number}.png" for number in range(10)]
        with migration.at_work(1) as take_turn:
            warm_up(migration, take_turn)
            for number, name in enumerate(names):
                migration.add(number, name, b"body of " + name.encode())
                migration.production.put(TO + name, b"body of " + name.encode())
            measured = look(found, names)
            migration.enqueue()
            with found.counting() as sent:
                assert take_turn()
        assert migration.counts() == {"migrated": WARM + 1, "kept": WARM + 10}
    assert measured.mode.expects_existing
    seen = list(measured.sample.seen.values())
    first = count_requests(seen[0], replace(measured.mode, expects_existing=False))
    expected = sum((count_requests(one, measured.mode) for one in seen[1:]), first)
    assert without_buckets(sent) == +expected


def sum_requests(measured: Measured, mode: CopyMode) -> RequestCounts:
    counts: RequestCounts = Counter()
    for one in measured.sample.seen.values():
        counts.update(count_requests(one, mode))
    return counts
