"""`rowferry estimate` is held against real migrations: their requests by side and method, and their bytes."""

import json
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from rowferry.reports.facts import COPY_KEEPS_TAGS, record_facts
from rowferry_lab.servers.s3_servers import S3Server
from support.entries.entry_table import FROM, TO
from support.entries.estimating import METHODS, estimate
from support.entries.listed_objects import name_objects, put_objects
from support.entries.migration import Migration
from support.entries.runs import Runs
from support.s3.request_log import RequestLog, logged

MIB = 1024**2
URL = "https://old.example/"


@pytest.fixture
def log(fake: S3Server) -> Iterator[RequestLog]:
    """A proxy before the fake, which honours If-None-Match as Amazon's S3 does."""
    with logged(fake.endpoint_url) as log:
        yield log


@pytest.fixture
def migration(fake_buckets, log: RequestLog, make_migration: Callable[..., Migration]) -> Migration:
    migration = make_migration(fake_buckets, fake_buckets)
    migration.reach_through(log.endpoint_url)
    migration.plan["legacy"]["immutable"] = True  # else a batch that is slow on a loaded machine looks again
    return migration


def stream(migration: Migration) -> None:
    migration.plan["migration"]["transfer"] = "stream"


def fill_column(migration: Migration) -> int:
    """Keys in a column, of small objects: some are missing, tagged, or in production already."""
    migration.fill(300)
    for number in range(301, 321):
        migration.add(number, f"tagged {number}", b"x" * 5000, Tagging="a=1")
        migration.add_row(100 + number, f"{FROM}missing {number}")
        migration.add(200 + number, f"same {number}", b"same")
        migration.production.put(f"{TO}same {number}", b"same")
    return sum(len(f"body of {number}") for number in range(1, 301)) + 20 * 5000


def fill_documents(migration: Migration) -> int:
    """Full URLs in documents, two in each, streamed."""
    stream(migration)
    migration.execute("alter table public.avatars alter path type jsonb using to_jsonb(path)")
    migration.plan["entries"][0] |= {
        "path": "$.*",
        "from": f"{URL}image/",
        "to": "https://new.example/avatar/",
        "legacy_object": FROM,
        "production_object": TO,
    }
    for number in range(150):
        for name in ("large", "small"):
            migration.legacy.put(f"{FROM}{number}/{name}", b"x" * 1000 * (1 + number % 7))
        document = json.dumps({name: f"{URL}image/{number}/{name}" for name in ("large", "small")})
        migration.execute("insert into public.avatars values (%s, %s::jsonb)", (number, document))
    return sum(2000 * (1 + number % 7) for number in range(150))


def fill_large(migration: Migration) -> int:
    """Objects of which most go by parts, with tags, and an ACL each."""
    migration.plan["migration"]["multipart_threshold_bytes"] = 5 * MIB
    for number in range(30):
        migration.add(number, f"{number}", bytes((1 if number % 3 else 11) * MIB), Tagging="a=1")
    return 10 * 11 * MIB + 20 * MIB


def fill_large_streamed(migration: Migration) -> int:
    stream(migration)
    return fill_large(migration)


def fill_folders(migration: Migration) -> int:
    runs = Runs(migration)
    for run in range(30):
        runs.add(f"r{run}", ["MLmodel", "model/a", "model/b"])
    return sum(len(body) for bodies in runs.bodies.values() for body in bodies.values())


def fill_prefix(migration: Migration) -> int:
    names = [f"{number}" for number in range(300)]
    put_objects(name_objects(migration), names)
    return sum(len(f"body of {name}") for name in names)


def fill_headers(migration: Migration) -> int:
    """Objects whose content headers the plan sets, so that each is looked at first."""
    migration.plan["production"]["cache_control"] = "max-age=60"
    migration.fill(200)
    return sum(len(f"body of {number}") for number in range(1, 201))


def fill_both(migration: Migration) -> int:
    """A rerun: all objects are in production already."""
    stream(migration)
    migration.fill(200)
    for number in range(1, 201):
        migration.production.put(f"{TO}u{number}/me.png", f"body of {number}".encode())
    return 0


FORMS = [
    fill_column,
    fill_documents,
    fill_large,
    fill_large_streamed,
    fill_folders,
    fill_prefix,
    fill_headers,
    fill_both,
]
LEARNED = 50
"""Requests by which a worker gets to know its servers; docs/size.md says that they are not counted."""


@pytest.mark.parametrize("fill", FORMS, ids=[form.__name__.removeprefix("fill_") for form in FORMS])
def test_an_estimate_is_within_a_fifth_of_a_real_run(
    migration: Migration, log: RequestLog, fill: Callable[[Migration], int]
) -> None:
    copied_bytes = fill(migration)
    log.seen.clear()
    found = estimate(migration)
    assert not [seen for seen in log.seen if seen.writes]
    expected: Counter[str] = Counter()
    for side in ("legacy", "production"):
        for operation, number in found["requests"][side].items():
            expected[f"{side} {METHODS.get(operation, 'GET' if operation[0] in 'GL' else 'PUT')}"] += number
    migration.enqueue(1000)
    with migration.session("check") as connection:  # what `rowferry migrate` finds by its probe
        record_facts(connection, "avatars", {COPY_KEEPS_TAGS: True})
    log.seen.clear()
    migration.work(parallel=4)
    sides = {migration.legacy.bucket: "legacy", migration.production.bucket: "production"}
    sent = Counter(f"{sides[each.bucket]} {each.method}" for each in log.seen if each.key or each.method != "HEAD")
    assert "INIT" not in migration.statuses()
    assert found["bytes"]["estimate"] == copied_bytes
    is_streamed = migration.plan["migration"].get("transfer") == "stream"
    assert found["egress_bytes"]["estimate"] == (copied_bytes if is_streamed else 0)
    for name in {*sent, *expected}:
        assert expected[name] == pytest.approx(sent[name], rel=0.2, abs=LEARNED), (name, expected, sent)
