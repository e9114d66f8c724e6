"""`rowferry estimate`: what it says of real migrations, and that it writes nothing unasked."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from math import inf

import pytest

from rowferry.progress import ignore_progress
from rowferry_cli.estimate import entries as counting
from rowferry_cli.estimate.measure import Limits as Limited
from rowferry_cli.estimate.measure import measure_plan
from rowferry_lab.servers.fake_s3.api import Deviations
from rowferry_lab.servers.fake_s3.limits import Limits
from rowferry_lab.servers.fake_s3.settings import Latency
from support.entries.entry_table import FROM, TO
from support.entries.estimates import estimate
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration
from support.postgres.roles import grant, log_in, new_role
from support.processes.cli import assert_went_well
from support.processes.processes import wait_for

IGNORES = Deviations(if_none_match=frozenset())
WRITES = {"PutObject", "CopyObject", "DeleteObject", "CreateMultipartUpload", "CompleteMultipartUpload", "UploadPart"}


@pytest.fixture
def fake(make_migration: Callable[..., Migration]) -> Iterator[FakeMigration]:
    """A migration within one server, which copies by itself."""
    yield from between_fakes(make_migration, server_side=True)


@pytest.fixture(params=[True, False], ids=["server", "stream"])
def each_fake(request: pytest.FixtureRequest, make_migration: Callable[..., Migration]) -> Iterator[FakeMigration]:
    """The same, and then between two servers: for what goes otherwise where objects are streamed."""
    yield from between_fakes(make_migration, server_side=request.param)


def between_fakes(make_migration: Callable[..., Migration], *, server_side: bool) -> Iterator[FakeMigration]:
    with fake_migration(make_migration, server_side=server_side) as found:
        yield found
        set_limits(found, Limits())  # else they would refuse what empties the buckets


def refuse(migration: Migration, *arguments: str) -> str:
    """Return the one sentence of an estimate that cannot be made."""
    migration.write_plan()
    done = migration.run("estimate", "--for", "2s", *arguments)
    *progress, sentence = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert all(line.startswith("…") for line in progress), "what takes long says what it is at"
    return f"{sentence}\n"


def set_limits(fake: FakeMigration, limits: Limits) -> None:
    for address in (fake.legacy, fake.production):
        address.fake._admission.set_limits(limits)


def set_latency(fake: FakeMigration, seconds: float) -> None:
    for address in (fake.legacy, fake.production):
        address.fake._latency.set_latency(Latency(seconds))


@pytest.mark.by_day("stream")
def test_what_will_be_moved_is_counted_and_nothing_is_written(each_fake: FakeMigration) -> None:
    migration = each_fake.migration
    migration.fill(50)
    migration.add(51, "tagged", b"x" * 5000, Tagging="a=1")
    migration.add_row(52, f"{FROM}missing")
    migration.add_row(53, f"{TO}migrated already")
    before = migration.rows()
    with each_fake.counting() as sent:
        found = estimate(migration)
    assert not WRITES & {operation for _, operation in sent}
    assert migration.rows() == before
    assert found["entries"]["estimate"] == found["entries"]["high"] == 52
    assert found["sample"]["objects"] == 52
    assert found["sample"]["shares"]["missing"]["estimate"] == pytest.approx(1 / 52)
    assert found["sample"]["shares"]["tagged"]["estimate"] == pytest.approx(1 / 52)
    assert found["bytes"]["estimate"] == 5000 + sum(len(f"body of {number}") for number in range(1, 51))
    assert found["egress_bytes"]["estimate"] == (0 if found["transfer"] == "server" else found["bytes"]["estimate"])
    assert found["measured"]["copied"] is False
    assert found["measured"]["objects"] > 0
    assert found["next"] == "rowferry migrate --dry-run"


def test_the_document_has_stable_names(fake: FakeMigration) -> None:
    fake.migration.fill(5)
    prices = ("--egress-price", "0.09", "--read-price", "0.0004", "--write-price", "0.005")
    found = estimate(fake.migration, *prices, "-p", "3")
    names = "migration transfer processes entries sample bytes egress_bytes requests seconds entries_per_second bound"
    assert list(found) == [*names.split(), "measured", "connections", "costs", "assumptions", "next"]
    for name in ("entries", "bytes", "egress_bytes", "seconds", "entries_per_second"):
        assert {"estimate", "low", "high"} <= found[name].keys()
        high = inf if found[name]["high"] is None else found[name]["high"]  # a busy machine has seen too little
        assert found[name]["low"] <= found[name]["estimate"] <= high
    assert list(found["requests"]) == ["total", "reads", "writes", "legacy", "production"]
    assert list(found["bound"]) == ["cause", "side", "sentence", "more_workers_help"]
    assert list(found["costs"]) == ["egress", "reads", "writes", "total"]
    assert list(found["connections"]) == ["legacy", "production", "postgresql"]
    assert found["processes"] == 3


def test_a_person_reads_a_table_and_sentences(fake: FakeMigration) -> None:
    fake.migration.fill(30)
    fake.migration.write_plan()
    done = fake.migration.run("estimate", "--for", "1s", "--egress-price", "0.09")
    assert_went_well(done)
    lines = done.stdout.splitlines()
    assert lines[0] == "Migration avatars"
    for beginning in (
        "entries  ",
        "bytes to copy",
        "egress",
        "cost of egress",
        "requests",
        "Sizes of 30 objects",
        "Bound by",
    ):
        assert any(line.startswith(beginning) for line in lines), beginning
    assert lines[-1] == "Next: rowferry migrate --dry-run"


def test_a_server_that_refuses_is_named_as_the_bound(fake: FakeMigration) -> None:
    fake.migration.fill(40)
    set_latency(fake, 0.02)
    set_limits(fake, Limits(reads_per_second=150))
    found = estimate(fake.migration, "-p", "16", within="6s", at_pace=True)
    assert found["bound"]["cause"] == "server_rate"
    assert found["bound"]["more_workers_help"] is False
    assert found["entries_per_second"]["estimate"] < 400


@pytest.mark.by_day("stream")
def test_a_rate_that_the_worker_has_learned_is_known_by_its_operation(each_fake: FakeMigration) -> None:
    """By the name under which the worker's machinery keeps it."""
    each_fake.migration.fill(40)
    set_limits(each_fake, Limits(reads_per_second=100))
    pairs = [(f"{FROM}u{number}/me.png", f"{TO}u{number}/me.png") for number in range(1, 41)]
    limits = Limited(within=timedelta(seconds=4), sample=10_000, parallel=512, copy=False)
    measured = measure_plan(each_fake.migration.read_plan(), pairs, limits, ignore_progress).measurement
    assert measured is not None
    assert measured.held_back
    assert measured.held_back <= measured.refused.keys()


def test_the_plans_own_limit_is_kept_and_named(fake: FakeMigration) -> None:
    fake.migration.plan["production"]["max_requests_per_second"] = 20
    fake.migration.fill(10)
    with fake.counting() as sent:
        found = estimate(fake.migration, within="3s", at_pace=True)
    assert found["bound"]["cause"] == "plan_requests"
    assert found["bound"]["side"] == "production"
    assert sum(number for (side, _), number in sent.items() if side == "production") < 20 * 12


@pytest.mark.by_day("stream")
def test_copied_objects_are_kept_by_the_migration(each_fake: FakeMigration) -> None:
    migration = each_fake.migration
    migration.fill(30)
    migration.add(31, "different", b"legacy")
    migration.production.put(f"{TO}different", b"the application's own")
    before = migration.rows()
    found = estimate(migration, "--copy")
    assert found["measured"]["copied"] is True
    assert found["measured"]["outcomes"] == {"migrated": 30, "conflict": 1}
    assert migration.rows() == before
    assert migration.production.read(f"{TO}different") == b"the application's own"
    assert estimate(migration)["sample"]["shares"]["existing"]["estimate"] == 1
    migration.enqueue()
    migration.work()
    assert migration.counts() == {"kept": 30, "conflict": 1}
    migration.audit(legacy_left=[31])


@pytest.mark.parametrize("server_side", [True, False], ids=["server", "stream"])
def test_a_copy_does_not_trust_a_condition_that_a_dry_run_has_met(
    make_migration: Callable[..., Migration], server_side: bool
) -> None:
    """The server ignores it: an object that stands in production is protected by looks alone."""
    with fake_migration(make_migration, IGNORES, server_side=server_side) as found:
        migration = found.migration
        migration.fill(10)
        for number in range(2, 11):
            migration.production.put(f"{TO}u{number}/me.png", b"the application's own")
        estimated = estimate(migration, "--copy")
        assert estimated["measured"]["outcomes"] == {"migrated": 1, "conflict": 9}
        assert {migration.production.read(f"{TO}u{number}/me.png") for number in range(2, 11)} == {
            b"the application's own"
        }


def test_nothing_of_the_legacy_bucket_is_written_by_a_copy(each_fake: FakeMigration) -> None:
    each_fake.migration.fill(10)
    with each_fake.counting() as sent:
        estimate(each_fake.migration, "--copy")
    assert sum(number for (_, operation), number in sent.items() if operation in WRITES) >= 10
    assert {operation for side, operation in sent if side == "legacy"}.isdisjoint(WRITES)


def test_a_table_without_legacy_entries_needs_no_request(fake: FakeMigration) -> None:
    fake.migration.add_row(1, f"{TO}a")
    with fake.counting() as sent:
        found = estimate(fake.migration)
    assert not sent
    assert (found["entries"]["estimate"], found["measured"], found["seconds"]) == (0, None, None)
    assert found["assumptions"] == ["no legacy entry was found"]


def test_where_every_object_is_missing_that_is_said(fake: FakeMigration) -> None:
    fake.migration.add_legacy(range(20))
    found = estimate(fake.migration)
    assert found["sample"]["shares"]["missing"]["estimate"] == 1
    assert (found["bytes"]["estimate"], found["next"]) == (0, "rowferry migrate --dry-run")


def test_a_key_that_cannot_become_a_production_key_is_counted_apart(fake: FakeMigration) -> None:
    fake.migration.add_row(1, FROM + "k" * 1018)
    fake.migration.fill(3, start=2)
    found = estimate(fake.migration)
    assert (found["sample"]["unusable_keys"], found["sample"]["objects"]) == (1, 3)


def test_a_migration_without_the_schema_is_estimated_too(fake: FakeMigration) -> None:
    fake.migration.fill(3)
    fake.migration.execute("drop schema rowferry cascade")
    assert estimate(fake.migration)["entries"]["estimate"] == 3


def test_a_database_that_cannot_be_written_to_is_enough(fake: FakeMigration) -> None:
    fake.migration.fill(3)
    fake.migration.write_plan()
    options = {"PGOPTIONS": "-c default_transaction_read_only=on"}
    done = fake.migration.run("estimate", "--copy", "--json", "--for", "30s", **options)
    assert json.loads(done.stdout)["measured"]["outcomes"] == {"migrated": 3}


def test_a_running_queue_tells_the_pace(fake: FakeMigration) -> None:
    migration = fake.migration
    migration.fill(40)
    migration.enqueue(10, limit=20)
    migration.work()
    found = estimate(migration)
    assert found["bound"]["cause"] == "queue"
    assert found["entries"]["estimate"] == 20
    assert found["next"] == "rowferry watch"


def test_a_wrong_table_is_one_sentence(fake: FakeMigration) -> None:
    fake.migration.plan["entries"][0]["table"] = "public.nowhere"
    assert "there is no table public.nowhere" in refuse(fake.migration)


def test_a_wrong_bucket_is_one_sentence(fake: FakeMigration) -> None:
    fake.migration.fill(1)
    fake.migration.plan["legacy"]["bucket"] = "nowhere"
    assert "There is no legacy bucket nowhere" in refuse(fake.migration)


@pytest.mark.parametrize("text", ["0s", "1h", "soon"])
def test_a_time_out_of_range_is_one_sentence(fake: FakeMigration, text: str) -> None:
    assert "--for" in refuse(fake.migration, "--for", text)


def test_without_the_right_to_read_no_estimate_is_made(logged_migration: Migration, log) -> None:
    logged_migration.fill(3)
    is_object = lambda seen: seen.key.startswith(FROM)  # noqa: E731
    with log.refusing(is_object, 403, "AccessDenied"):
        words = refuse(logged_migration)
    assert "legacy bucket" in words
    assert "give the legacy credentials s3:GetObject and s3:ListBucket" in words


@pytest.mark.soak
def test_a_server_that_falls_silent_is_one_sentence(logged_migration: Migration, log) -> None:
    logged_migration.fill(3)
    with log.holding(lambda seen: seen.key.startswith(FROM)):
        words = refuse(logged_migration)
    assert "No object could be looked at within 2 s" in words


def test_without_the_right_to_look_at_production_objects_they_count_as_new(logged_migration: Migration, log) -> None:
    logged_migration.fill(3)
    with log.refusing(lambda seen: seen.key.startswith(TO), 403, "AccessDenied"):
        found = estimate(logged_migration)
    assert found["sample"]["shares"]["existing"]["estimate"] == 0
    assert any("nothing is in production yet" in words for words in found["assumptions"])


def test_ctrl_c_ends_the_measuring_and_not_the_report(fake: FakeMigration) -> None:
    migration = fake.migration
    migration.fill(20)
    migration.write_plan()
    set_latency(fake, 0.05)
    command = [sys.executable, "-m", "rowferry_cli", "estimate", "--json", "--for", "5m", "--sample", "10000"]
    with fake.counting() as sent:
        process = subprocess.Popen(
            command, cwd=migration.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            wait_for(lambda: sum(sent.values()) > 100)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["measured"]["interrupted"] is True


# Counting


def test_a_large_table_is_counted_by_some_of_its_blocks(fake: FakeMigration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SCANNED_BYTES", 0)
    monkeypatch.setattr(counting, "SAMPLED_BLOCKS", 60)
    migration = fake.migration
    migration.execute("insert into public.avatars select n, 'image/' || n from generate_series(1, 40000) as n")
    found = estimate(migration, "--sample", "20")["entries"]
    assert found["low"] < 40_000 < found["high"]
    assert found["low"] > 20_000
    assert found["estimate"] != 40_000


@pytest.mark.soak
def test_entries_that_stand_together_widen_the_range(fake: FakeMigration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SCANNED_BYTES", 0)
    monkeypatch.setattr(counting, "SAMPLED_BLOCKS", 60)
    fill = "insert into public.avatars select n, case when {} then 'image/' else 'avatar/' end || n "
    series = "from generate_series(1, 40000) as n"
    widths: list[float] = []
    for condition in ("n % 4 = 0", "n <= 10000"):
        fake.migration.execute("truncate public.avatars")
        fake.migration.execute(fill.format(condition) + series)
        found = estimate(fake.migration, "--sample", "20")["entries"]
        assert found["low"] < 10_000 < found["high"]
        widths.append(found["high"] - found["low"])
    assert widths[1] > 1.5 * widths[0]


def test_a_partitioned_table_is_counted_with_its_partitions(
    fake: FakeMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "SCANNED_BYTES", 0)
    execute = fake.migration.execute
    execute("drop table public.avatars")
    execute("create table public.avatars (id bigint primary key, path text) partition by range (id)")
    execute("create table public.first partition of public.avatars for values from (0) to (1000)")
    execute("create table public.others partition of public.avatars default")
    execute("insert into public.avatars select n, 'image/' || n from generate_series(1, 3000) as n")
    assert estimate(fake.migration, "--sample", "20")["entries"]["estimate"] == 3000


@pytest.mark.parametrize("scanned_bytes", [0, 10**9], ids=["blocks", "whole"])
def test_the_rights_of_an_enqueuer_are_enough(
    fake: FakeMigration, monkeypatch: pytest.MonkeyPatch, scanned_bytes: int
) -> None:
    """They are rights on columns, which do not include the number of a row's block."""
    monkeypatch.setattr(counting, "SCANNED_BYTES", scanned_bytes)
    monkeypatch.setattr(counting, "SAMPLED_BLOCKS", 10)
    migration = fake.migration
    migration.execute("insert into public.avatars select n, 'image/' || n from generate_series(1, 9000) as n")
    with new_role(migration.dsn) as role:
        grant(migration, {"enqueuer": role})
        monkeypatch.setenv("DATABASE_URL", log_in(migration, role))
        found = estimate(migration, "--sample", "20")["entries"]
    assert found["low"] <= 9000 <= found["high"]


def test_a_table_that_cannot_be_read_in_time_is_one_sentence(
    fake: FakeMigration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "STATEMENT_TIMEOUT", timedelta(seconds=1))
    fake.migration.fill(3)
    fake.migration.plan["entries"][0]["where"] = "pg_sleep(100) is not null"
    assert "did not read even a part of public.avatars within 1 s" in refuse(fake.migration)


def test_two_tables_are_estimated_each_by_its_own_sample(fake: FakeMigration) -> None:
    migration = fake.migration
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
    assert found["entries"]["tables"]["public.banners.path"]["estimate"] == 4
