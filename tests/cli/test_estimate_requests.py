"""What `rowferry estimate` counts for an object is what a real worker sends: a change of one fails here."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from rowferry.progress import ignore_progress
from rowferry_cli.estimate.request_counts import CopyMode, RequestCounts, count_overhead, count_requests
from rowferry_cli.estimate.sampling import Limits, Measured, measure_plan
from rowferry_lab.servers.fake_s3.api import Deviations
from rowferry_lab.servers.fake_s3.store import Bucket, make_object
from rowferry_worker.properties.tags import ASKED_FIRST
from support.entries.entry_table import FROM, TO
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration

PART_BYTES = 5 * 1024 * 1024
LARGE = bytes(2 * PART_BYTES + 7)
MEDIUM_BYTES = 9 * 1024 * 1024
WARM = ASKED_FIRST + 1
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


OF_PLAN: dict[str, dict[str, Any]] = {
    "plain": {},
    "acl": {"acl": "public-read"},
    "content header": {"cache_control": "max-age=1"},
    "no tags": {"tags": "none"},
    "all": {"acl": "copy", "cache_control": "max-age=1", "storage_class": "STANDARD_IA", "tags": {"team": "a"}},
}
OF_PLAN_CASES = ("small", "tagged", "missing", "identical", "different", "large", "large and tagged")


@dataclass(frozen=True)
class Situation:
    """A plan, and the cases that are worked on by it, one after the other."""

    of_production: dict[str, Any]
    threshold: int | None
    names: list[str]


def list_situations(plans: Iterable[str]) -> Iterator[tuple[str, Situation]]:
    """Yield each by its name: every case by the plainest plan, some by plans that say something of objects."""
    for of_plan in plans:
        names = tuple(CASES) if of_plan == "plain" else OF_PLAN_CASES
        for threshold in sorted({CASES[name].threshold or 0 for name in names}):
            chosen = [name for name in names if (CASES[name].threshold or 0) == threshold]
            yield f"{of_plan} {threshold}", Situation(OF_PLAN[of_plan], threshold or None, chosen)


def stores(found: FakeMigration) -> tuple[Bucket, Bucket]:
    """Return the objects of the legacy side and of the production side, which no request has to read or write."""
    migration, store = found.migration, found.legacy.fake.store
    return store.bucket(migration.legacy.bucket), store.bucket(migration.production.bucket)


def warm_up(found: FakeMigration, take_turn: Callable[[], bool], large: bytes | None = None) -> None:
    """Let a worker find out all about its servers: by objects with tags, without, already in production, and large."""
    migration, (legacy, production) = found.migration, stores(found)
    legacy.put(f"{FROM}warm", make_object(b"tagged", tags={"a": "1"}))
    numbers = range(100, 100 + 2 * WARM)
    for number in numbers:
        legacy.put(f"{FROM}u{number}/me.png", make_object(b"body of %d" % number))
    for number in numbers[:WARM]:
        production.put(f"{TO}u{number}/me.png", make_object(b"body of %d" % number))
    migration.insert({"99": f"{FROM}warm"})
    migration.add_legacy(numbers)
    if large is not None:
        legacy.put(f"{FROM}before", make_object(large, tags={"a": "1"}))
        migration.insert({"999": f"{FROM}before"})
    migration.enqueue()
    assert take_turn()


def begin(found: FakeMigration, name: str, situation: Situation) -> None:
    """Begin a migration of its own, of objects that no migration before has copied."""
    migration = found.migration
    migration.execute("truncate public.avatars")
    bound = {} if situation.threshold is None else {"multipart_threshold_bytes": situation.threshold}
    migration.plan["migration"] = {"name": name.replace(" ", "-"), **bound}
    side = migration.plan["production"]
    migration.plan["production"] = {name: side[name] for name in ("bucket", "endpoint_url")} | situation.of_production
    for objects in stores(found):
        objects.objects.clear()
    for case in situation.names:
        CASES[case].put(migration, case)
    if "identical" in situation.names and situation.of_production.get("acl") == "public-read":
        bucket = {"Bucket": migration.production.bucket, "Key": f"{TO}identical"}
        migration.production.client.put_object_acl(**bucket, ACL="public-read")


def copy_apart(found: FakeMigration, names: list[str], take_turn: Callable[[], bool]) -> None:
    """Let the worker copy objects, before each a new one: it shall not expect them in production already."""
    legacy, _ = stores(found)
    for number, name in enumerate(names):
        legacy.put(f"{FROM}new{number}", make_object(b"new"))
        found.migration.insert({f"{1000 + 2 * number}": f"{FROM}new{number}", f"{1001 + 2 * number}": FROM + name})
    found.migration.enqueue()
    assert take_turn()


MODES = [
    pytest.param(Deviations(), tuple(OF_PLAN), id="honours"),
    pytest.param(IGNORES, ("plain", "all"), id="ignores"),
    pytest.param(IGNORES, ("acl", "content header", "no tags"), id="ignores-others", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("deviations", "plans"), MODES)
@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.by_day("server-honours")
def test_the_requests_of_an_object_are_those_of_a_worker(
    make_migration: Callable[..., Migration],
    server_side: bool,
    deviations: Deviations,
    plans: Iterable[str],
    subtests: pytest.Subtests,
) -> None:
    """An object that is kept has its ACL already; what the server does with an ACL is known from earlier objects."""
    with fake_migration(make_migration, deviations, server_side=server_side) as found:
        for title, situation in list_situations(plans):
            begin(found, title, situation)
            measured = look(found, situation.names)
            mode = replace(measured.mode, honours_condition=bool(deviations.if_none_match), expects_existing=False)
            with found.migration.at_work(1) as take_turn:
                warm_up(found, take_turn, LARGE if situation.threshold else b"before")
                with found.counting_by_key() as sent:
                    copy_apart(found, situation.names, take_turn)
            for number, name in enumerate(situation.names):
                with subtests.test(f"{title}: {name}"):
                    requests = sent[FROM + name] + sent[TO + name]
                    assert requests == +count_requests(measured.sample.seen[number], mode)


def put_all(
    found: FakeMigration, names: list[str], tags: Mapping[str, str] | None = None, *, in_production: bool = False
) -> None:
    """Add objects, and a row for each."""
    legacy, production = stores(found)
    for name in names:
        legacy.put(FROM + name, make_object(b"body of " + name.encode(), tags=tags or {}))
        if in_production:
            production.put(TO + name, make_object(b"body of " + name.encode()))
    found.migration.insert({str(number): FROM + name for number, name in enumerate(names)})


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("of_plan", [name for name in OF_PLAN if name != "plain"])
@pytest.mark.by_day("*stream*")
def test_a_whole_migration_with_properties_sends_what_was_estimated(
    make_migration: Callable[..., Migration], server_side: bool, of_plan: str
) -> None:
    with fake_migration(make_migration, server_side=server_side) as found:
        migration, names = found.migration, [f"{number}.png" for number in range(40)]
        migration.plan["production"] |= OF_PLAN[of_plan]
        put_all(found, names)
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
@pytest.mark.parametrize("tags", [{}, {"a": "1"}], ids=["untagged", "tagged"])
def test_a_whole_migration_sends_what_was_estimated(
    make_migration: Callable[..., Migration], server_side: bool, tags: dict[str, str]
) -> None:
    with fake_migration(make_migration, server_side=server_side) as found:
        migration, names = found.migration, [f"{number}.png" for number in range(40)]
        put_all(found, names, tags)
        measured = look(found, names)
        migration.enqueue()
        with found.counting() as sent:
            migration.work(parallel=1)
        assert migration.counts() == {"migrated": 40}
    assert without_buckets(sent) == sum_requests(measured, measured.mode) + count_overhead(
        40, measured.mode, any_tagged=bool(tags)
    )


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
def test_a_rerun_sends_what_was_estimated(make_migration: Callable[..., Migration], server_side: bool) -> None:
    """The first object tells a streaming worker that the others are there as well."""
    with fake_migration(make_migration, server_side=server_side) as found:
        migration, names = found.migration, [f"{number}.png" for number in range(10)]
        with migration.at_work(1) as take_turn:
            warm_up(found, take_turn)
            put_all(found, names, in_production=True)
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
