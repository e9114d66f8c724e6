"""`rowferry estimate`: what it says, of what it cannot say anything, and that it only reads."""

import json
import time
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.plan_file import parse_plan
from rowferry.s3.operations import COPY_LIMIT_BYTES, PUT_LIMIT_BYTES
from rowferry.s3.responses import Response
from rowferry_cli.estimate import sample as sampling
from rowferry_cli.estimate.figures import choose_prices, sum_up
from rowferry_cli.estimate.requests import Cost, count_parts
from rowferry_worker.multipart.part_size import COPY_PART_BYTES, SMALLEST_PART_BYTES, STREAM_PART_BYTES
from support.entries.entry_table import FROM, TO
from support.entries.estimating import estimate
from support.entries.listed_objects import name_objects, put_objects
from support.entries.migration import Migration
from support.entries.runs import Runs
from support.postgres.roles import grant, log_in, new_role
from support.postgres.said_stable import allow_functions
from support.processes.cli import assert_went_well
from support.s3.buckets import Buckets
from support.s3.request_log import RequestLog

DIGEST = "0" * 32
BY_PARTS = f"{DIGEST}-3"


@pytest.fixture
def migration(fake_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """An empty migration within one server, which copies by itself."""
    return make_migration(fake_buckets, fake_buckets)


def refuse(migration: Migration, *arguments: str, **environment: str) -> str:
    """Return the one sentence of an estimate that cannot be made."""
    migration.write_plan()
    done = migration.run_here("estimate", *arguments, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    *progress, sentence = done.stderr.splitlines()
    assert all(line.startswith("…") for line in progress)
    return sentence


def test_a_person_reads_a_table_and_the_next_command(migration: Migration) -> None:
    migration.fill(30).write_plan()
    done = migration.run_here("estimate")
    assert_went_well(done)
    lines = done.stdout.splitlines()
    assert lines[0] == "Migration avatars"
    begin = (
        "entries  |objects all|bytes to copy|egress of legacy|production CopyObject|legacy HeadObject takes|requests"
    )
    for beginning in f"{begin}|dollars|prices|time".split("|"):
        assert any(line.startswith(beginning) for line in lines), beginning
    assert lines[-1] == "Next: rowferry migrate --dry-run"


def test_the_document_has_stable_names(migration: Migration) -> None:
    migration.fill(5)
    found = estimate(migration, "-p", "3")
    names = "migration processes entries tables sample objects bytes egress_bytes requests latency_seconds"
    assert list(found) == [*names.split(), "seconds", "costs", "notes", "next", "prices"]
    assert (found["processes"], found["entries"], found["tables"]) == (3, 5, {"public.avatars.path": 5})
    for one in (found["bytes"], found["egress_bytes"], *found["objects"].values(), *found["costs"].values()):
        assert 0 <= one["low"] <= one["estimate"] <= one["high"]
    assert list(found["requests"]) == ["total", "reads", "writes", "legacy", "production"]
    assert list(found["objects"]) == ["all", "missing", "existing", "tagged", "in_parts"]
    assert list(found["costs"]) == ["egress", "reads", "writes", "total"]
    assert list(found["seconds"]) == ["at_limits", "at_latency", "bound"]


def test_each_kind_of_object_is_counted(migration: Migration) -> None:
    migration.fill(50).add(51, "tagged", b"x" * 5000, Tagging="a=1").add_row(52, f"{FROM}missing")
    migration.add_row(53, f"{TO}migrated already").add(54, "there", b"there")
    migration.production.put(f"{TO}there", b"there")
    migration.add_row(55, FROM + "k" * 1018)
    found = estimate(migration)
    assert found["entries"] == 54
    counts = {name: one["estimate"] for name, one in found["objects"].items()}
    assert counts == {"all": 53, "missing": 1, "existing": 1, "tagged": 1, "in_parts": 0}
    assert found["sample"] == {"objects": 53, "unusable": 1}, "its production key would be too long"
    assert found["bytes"]["estimate"] == 5000 + sum(len(f"body of {number}") for number in range(1, 51))


def test_two_tables_are_estimated_each_by_its_own_sample(migration: Migration) -> None:
    migration.execute("create table public.banners (id bigint primary key, path text)")
    migration.plan["entries"].append(
        {"table": "public.banners", "id": "id", "key": "path", "from": "pictures/", "to": "banner/"}
    )
    migration.fill(30)
    for number in range(4):
        migration.legacy.put(f"pictures/{number}", b"x" * 1000)
        migration.execute("insert into public.banners values (%s, %s)", (number, f"pictures/{number}"))
    found = estimate(migration)
    assert found["bytes"]["estimate"] == 4000 + sum(len(f"body of {number}") for number in range(1, 31))
    assert found["tables"] == {"public.avatars.path": 30, "public.banners.path": 4}


def test_a_partitioned_table_is_counted_with_its_partitions(migration: Migration) -> None:
    execute = migration.execute
    execute("drop table public.avatars")
    execute("create table public.avatars (id bigint primary key, path text) partition by range (id)")
    execute("create table public.first partition of public.avatars for values from (0) to (1000)")
    execute("create table public.others partition of public.avatars default")
    execute("insert into public.avatars select n, 'image/' || n from generate_series(1, 3000) as n")
    found = estimate(migration, "--sample", "20")
    assert (found["entries"], found["sample"]["objects"]) == (3000, 20)
    assert found["objects"]["missing"]["estimate"] == 3000


def test_a_sample_leaves_a_range_that_holds_the_truth(migration: Migration) -> None:
    sizes = {number: 100 if number % 3 else 4000 for number in range(200)}
    for number, size in sizes.items():
        migration.add(number, f"{number}", b"x" * size)
    found = estimate(migration, "--sample", "60")
    assert found["bytes"]["low"] < sum(sizes.values()) < found["bytes"]["high"]
    assert found["bytes"]["high"] < 2 * sum(sizes.values())
    assert found["entries"] == found["objects"]["all"]["estimate"] == 200
    whole = estimate(migration, "--sample", "200")["bytes"]
    assert whole["low"] == whole["estimate"] == whole["high"] == sum(sizes.values())


def test_each_sampled_object_is_looked_at_once_and_nothing_is_written(
    logged_migration: Migration, log: RequestLog
) -> None:
    logged_migration.fill(40)
    before = logged_migration.rows()
    log.seen.clear()
    estimate(logged_migration, "--sample", "20")
    asked = [seen.path for seen in log.seen if seen.key]
    assert len(asked) == len({*asked}) == 40
    assert {seen.method for seen in log.seen} == {"GET", "HEAD"}, "GET lists the buckets"
    assert logged_migration.rows() == before


def test_a_table_without_legacy_entries_needs_no_request(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.add_row(1, f"{TO}a")
    log.seen.clear()
    found = estimate(logged_migration)
    assert not log.seen
    assert (found["entries"], found["seconds"]["at_latency"]) == (0, 0)


def test_a_database_that_cannot_be_written_to_and_has_no_schema_is_enough(migration: Migration) -> None:
    migration.fill(3)
    migration.execute("drop schema rowferry cascade")
    migration.write_plan()
    done = migration.run("estimate", "--json", PGOPTIONS="-c default_transaction_read_only=on")
    assert json.loads(done.stdout)["entries"] == 3


def test_the_rights_of_an_enqueuer_are_enough(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    migration.fill(3)
    with new_role(migration.dsn) as role:
        grant(migration, {"enqueuer": role})
        monkeypatch.setenv("DATABASE_URL", log_in(migration, role))
        assert estimate(migration)["entries"] == 3


def test_objects_without_rows_are_counted_by_a_listing(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    name_objects(migration)
    assert estimate(migration)["entries"] == 0
    put_objects(migration, map(str, range(1100)))
    put_objects(migration, ["other"], prefix="x/")
    found = estimate(migration, "--sample", "20")
    assert (found["tables"], found["sample"]["objects"]) == ({"variants/*": 1100}, 20)
    assert found["requests"]["legacy"]["ListObjectsV2"] == 6
    assert not found["notes"]
    monkeypatch.setattr(sampling, "LISTED_SECONDS", -1.0)
    given_up = estimate(migration, "--sample", "10")
    assert (given_up["entries"], given_up["sample"]["objects"]) == (1, 1)
    assert given_up["notes"] == ["variants/* has more objects than were listed"]


def test_a_sample_of_folders_is_opened(migration: Migration) -> None:
    runs = Runs(migration)
    for run in range(20):
        runs.add(f"r{run}", ["a", "b", "c"])
    found = estimate(migration, "--sample", "15")
    assert (found["entries"], found["sample"]["objects"]) == (20, 15)
    assert found["objects"]["all"]["estimate"] == 60


BOUNDS: list[tuple[dict[str, dict[str, Any]], tuple[str, ...], str, float]] = [
    ({"legacy": {"max_requests_per_second": 10, "rewritten": True}}, (), "requests to legacy", 10),
    ({"production": {"max_requests_per_second": 10}}, (), "requests to production", 10),
    ({"database": {"max_rows_per_second": 5}}, (), "max_rows_per_second", 20),
    ({}, ("-p", "1"), "the CPU of workers", 100 / 1400),
    ({"migration": {"name": "avatars", "transfer": "stream"}}, ("--gigabits", "0.001"), "the link", 8),
]


def test_the_narrowest_limit_bounds_the_time(migration: Migration, subtests: pytest.Subtests) -> None:
    for number in range(100):
        migration.add(number, f"{number}", bytes(10_000))
    plan = dict(migration.plan)
    for changes, arguments, bound, seconds in BOUNDS:
        with subtests.test(bound):
            migration.plan = {**plan, **{name: {**plan.get(name, {}), **change} for name, change in changes.items()}}
            found = estimate(migration, *arguments)["seconds"]
            assert found["bound"] == bound
            assert found["at_limits"] == pytest.approx(seconds)
            assert found["at_latency"] >= found["at_limits"]


def test_latency_is_shared_by_the_objects_in_flight(logged_migration: Migration, log: RequestLog) -> None:
    """Ten copies that take twice as long as a look, 16 at a time."""
    logged_migration.fill(10)
    with log.telling(lambda _: time.sleep(0.05)):
        found = estimate(logged_migration, "-p", "1")
    took = found["latency_seconds"]
    assert min(took.values()) >= 0.05
    assert found["seconds"]["at_latency"] == pytest.approx(20 * took["production"] / 16)


def test_prices_are_those_of_the_providers_and_amazons_where_they_are_not_known(migration: Migration) -> None:
    migration.plan["legacy"]["provider"] = "r2"
    migration.plan["production"]["provider"] = "wasabi"
    chosen = choose_prices(parse_plan(migration.plan, "test"))
    assert [whose for whose, _ in chosen.values()] == ["Cloudflare R2", "Cloudflare R2", "Wasabi"]
    assert (chosen["egress"][1], chosen["reads"][1] * 1000) == (0, pytest.approx(0.00036))
    migration.plan["production"]["provider"] = "hetzner"
    assert choose_prices(parse_plan(migration.plan, "test"))["writes"] == ("Amazon S3", 0.005 / 1000)


def test_prices_apply_to_what_they_are_for(migration: Migration) -> None:
    migration.plan["migration"]["transfer"] = "stream"
    migration.fill(20)
    found = estimate(migration)
    assert found["prices"] == dict.fromkeys(("egress", "reads", "writes"), "Amazon S3")
    costs = {name: one["estimate"] for name, one in found["costs"].items()}
    assert costs["egress"] == pytest.approx(0.09e-9 * found["bytes"]["estimate"])
    assert (costs["reads"], costs["writes"]) == pytest.approx((40 * 0.0004 / 1000, 20 * 0.005 / 1000))
    assert costs["total"] == pytest.approx(sum(costs.values()) - costs["total"])


@pytest.mark.parametrize("arguments", [["--gigabits", "0"], ["--sample", "1"]])
def test_a_number_out_of_range_is_one_sentence(migration: Migration, arguments: list[str]) -> None:
    assert f"'{arguments[0]}'" in refuse(migration, *arguments)


def test_a_wrong_table_is_one_sentence(migration: Migration) -> None:
    migration.plan["entries"][0]["table"] = "public.nowhere"
    assert "here is no table public.nowhere" in refuse(migration)


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_wrong_bucket_is_one_sentence(migration: Migration, side: str) -> None:
    migration.fill(1)
    migration.plan[side]["bucket"] = "nowhere"
    words = refuse(migration)
    assert f"There is no {side} bucket nowhere" in words
    assert f"correct [{side}] in the plan" in words


def test_a_table_that_cannot_be_read_in_time_is_one_sentence(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.fill(3)
    allow_functions(migration, monkeypatch)
    migration.plan["entries"][0]["where"] = "public.nap(100) is not null"
    words = refuse(migration, PGOPTIONS="-c statement_timeout=500")
    assert "could not be scanned" in words
    assert "let this role take longer" in words


@pytest.mark.parametrize(("side", "prefix"), [("legacy", FROM), ("production", TO)])
def test_without_the_right_to_read_no_estimate_is_made(
    logged_migration: Migration, log: RequestLog, side: str, prefix: str
) -> None:
    logged_migration.fill(20)
    log.seen.clear()
    with log.refusing(lambda seen: seen.key.startswith(prefix), 403, "AccessDenied"):
        words = refuse(logged_migration)
    asked = {seen.key for seen in log.seen if seen.key.startswith(prefix)}
    assert len(asked) == sampling.TIMED, "then it asks for no more"
    assert f"he {side} bucket" in words
    assert f"give the {side} credentials s3:GetObject and s3:ListBucket" in words


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(60, 10**8))
def test_a_range_holds_its_estimate(sizes: list[int], entries: int) -> None:
    total = sum_up([(entries, [Cost({"bytes": size}) for size in sizes])], ["bytes"])
    assert 0 <= total["low"] <= total["estimate"] <= total["high"] < inf


def test_the_upper_bound_reckons_with_objects_like_the_largest() -> None:
    costs = [Cost({"bytes": size}) for size in [*[1000] * 99, 10**6]]
    total = sum_up([(100_000, costs)], ["bytes"])
    assert total["high"] - total["estimate"] > 3 / 100 * 99_900 * 10**6
    assert sum_up([(100, costs)], ["bytes"])["high"] == total["estimate"] / 1000
    assert sum_up([(1000, costs)], ["missing"])["high"] == pytest.approx(27), "none of 100 may be 3 % of the others"


@pytest.mark.parametrize(
    ("transfer", "size", "etag", "parts"),
    [
        ("stream", PUT_LIMIT_BYTES, DIGEST, 0),
        ("stream", PUT_LIMIT_BYTES + 1, DIGEST, PUT_LIMIT_BYTES // SMALLEST_PART_BYTES + 1),
        ("stream", STREAM_PART_BYTES, BY_PARTS, 0),
        ("stream", STREAM_PART_BYTES + 1, BY_PARTS, 2),
        ("stream", 10**12, DIGEST, 10_000),
        ("server", COPY_LIMIT_BYTES, BY_PARTS, 0),
        ("server", COPY_LIMIT_BYTES + 1, DIGEST, COPY_LIMIT_BYTES // COPY_PART_BYTES + 1),
    ],
)
def test_a_large_object_is_counted_by_its_parts(transfer: str, size: int, etag: str, parts: int) -> None:
    entries = {"table": "t", "id": "id", "key": "key", "from": "image/", "to": "avatar/"}
    sides = {"legacy": {"bucket": "old"}, "production": {"bucket": "new"}}
    plan = parse_plan({"migration": {"name": "m", "transfer": transfer}, **sides, "entries": [entries]}, "of the test")
    assert count_parts(plan, Response(200, {"etag": f'"{etag}"', "content-length": str(size)})) == parts
