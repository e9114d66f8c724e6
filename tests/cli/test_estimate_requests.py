"""The requests that `rowferry estimate` expects are those that a real worker sends, object by object and in all."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from rowferry.http import event_loop
from rowferry.progress import ignore_progress
from rowferry_cli.estimate.dry_run import Operation
from rowferry_cli.estimate.measure import Limits, Measured, measure_plan
from rowferry_cli.estimate.sample import ObjectSample
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


def look(found: FakeMigration, keys: list[str], *, objects: float = inf) -> Measured:
    """Look at these keys, of a migration of so many objects."""
    pairs = [(FROM + key, TO + key) for key in keys]
    limits = Limits(
        within=timedelta(seconds=30), sample=len(pairs), parallel=1, copy=False, objects=objects, pace_is_known=True
    )
    measured = measure_plan(found.migration.read_plan(), pairs, limits, ignore_progress)
    assert len(measured.sample.objects) == len(pairs)
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


def add_unlike(migration: Migration, key: str) -> None:
    """Add an object that is in production already, which only its bytes tell."""
    add_uploaded(migration, key)
    migration.production.put(TO + key, bytes(MEDIUM_BYTES))


CASES = {
    "equal by its bytes": Case(add_unlike),
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


def begin(found: FakeMigration, name: str, situation: Situation) -> list[str]:
    """Begin a migration of its own; return its keys in the order in which a worker takes them.

    First some by which it gets to know its servers: in production already, without tags, and with. Then the cases,
    before each a new object, so that a worker does not expect it in production.
    """
    migration, (legacy, production) = found.migration, stores(found)
    migration.execute("truncate public.avatars")
    bound = {} if situation.threshold is None else {"multipart_threshold_bytes": situation.threshold}
    migration.plan["migration"] = {"name": name.replace(" ", "-"), **bound}
    side = migration.plan["production"]
    migration.plan["production"] = {name: side[name] for name in ("bucket", "endpoint_url")} | situation.of_production
    legacy.objects.clear()
    production.objects.clear()
    keys = [f"old{number}" for number in range(2 * WARM)]
    for number, key in enumerate(keys):
        legacy.put(FROM + key, make_object(b"body of %d" % number))
        if number < WARM:
            production.put(TO + key, make_object(b"body of %d" % number))
    for case in situation.names:
        legacy.put(f"{FROM}before {case}", make_object(b"new"))
        CASES[case].put(migration, case)
        keys += [f"before {case}", case]
    migration.insert({str(number): FROM + key for number, key in enumerate(keys)})
    return keys


MODES = [
    pytest.param(Deviations(), tuple(OF_PLAN), id="honours"),
    pytest.param(IGNORES, ("plain", "all"), id="ignores"),
    pytest.param(IGNORES, ("acl", "content header", "no tags"), id="ignores-others", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("deviations", "plans"), MODES)
@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.by_day("server-honours")
def test_the_requests_of_each_object_are_those_of_a_worker(
    make_migration: Callable[..., Migration],
    server_side: bool,
    deviations: Deviations,
    plans: Iterable[str],
    subtests: pytest.Subtests,
) -> None:
    """Those by which the worker gets to know its servers included."""
    with fake_migration(make_migration, deviations, server_side=server_side) as found:
        for title, situation in list_situations(plans):
            keys = begin(found, title, situation)
            sample = look(found, keys, objects=len(keys)).sample
            event_loop.run(sample.count(len(keys), honours_condition=bool(deviations.if_none_match)))
            with found.counting_by_key() as sent:
                found.migration.enqueue()
                found.migration.work(parallel=1)
            for number, key in enumerate(keys):
                with subtests.test(f"{title}: {key}"):
                    assert sample.objects[number].requests == sent[FROM + key] + sent[TO + key]


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


def work_on(found: FakeMigration) -> Counter[tuple[str, str]]:
    """Return what a real worker sends, but for its looks at the buckets."""
    found.migration.enqueue()
    with found.counting() as sent:
        found.migration.work(parallel=1)
    return Counter({one: number for one, number in sent.items() if one[1] not in BUCKETS})


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
@pytest.mark.parametrize("tags", [{}, {"a": "1"}], ids=["untagged", "tagged"])
@pytest.mark.parametrize("of_plan", OF_PLAN)
@pytest.mark.by_day("plain*", "*untagged-stream*")
def test_a_sample_tells_the_requests_of_the_whole_migration(
    make_migration: Callable[..., Migration], server_side: bool, tags: dict[str, str], of_plan: str
) -> None:
    """What the worker learns costs no more for more objects."""
    with fake_migration(make_migration, server_side=server_side) as found:
        names = [f"{number}.png" for number in range(120)]
        found.migration.plan["production"] |= OF_PLAN[of_plan]
        put_all(found, names, tags)
        sample = look(found, names[:60], objects=120).sample
        sent = work_on(found)
        assert found.migration.counts() == {"migrated": 120}
    expected = sum_requests(sample) + sum_requests(sample)
    expected.update(sample.learning)
    assert +expected == sent


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
def test_a_rerun_sends_what_was_estimated(make_migration: Callable[..., Migration], server_side: bool) -> None:
    """The first object tells a streaming worker that the others are there as well."""
    with fake_migration(make_migration, server_side=server_side) as found:
        names = [f"{number}.png" for number in range(10)]
        put_all(found, names, in_production=True)
        sample = look(found, names, objects=10).sample
        sent = work_on(found)
        assert found.migration.counts() == {"kept": 10}
    assert sum_requests(sample) == sent


@pytest.mark.parametrize(
    ("server_side", "read"), [(True, "HeadObject"), (False, "GetObject")], ids=["server", "stream"]
)
def test_a_look_reads_each_object_once_and_writes_nothing(
    make_migration: Callable[..., Migration], server_side: bool, read: str
) -> None:
    """Beside it, only those are asked for tags that a worker would ask."""
    with fake_migration(make_migration, server_side=server_side) as found:
        names = [f"{number}.png" for number in range(40)]
        put_all(found, names)
        with found.counting() as sent:
            look(found, names)
    assert sent.pop(("legacy", "GetObjectTagging")) in {ASKED_FIRST, ASKED_FIRST - 1}
    read_once = {("legacy", read): 40, ("production", "HeadObject"): 40}
    assert {one: number for one, number in sent.items() if one[1] not in BUCKETS} == read_once


def sum_requests(sample: ObjectSample) -> Counter[Operation]:
    return sum((one.requests for one in sample.objects.values()), Counter[Operation]())
