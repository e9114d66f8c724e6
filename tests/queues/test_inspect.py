"""Facts of objects in rows: streamed once, inflated as they go, written where the row still names the object."""

import gzip
import hashlib
import os
from collections.abc import Callable
from typing import Any

import pytest
from psycopg import sql

from rowferry.db.timeouts import LOCK_TIMEOUT
from rowferry.errors import PlanError
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue
from rowferry_queues.inspect import perform as performing
from rowferry_queues.inspect.spec import MiB
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.postgres.lock_holders import uncommitted
from support.postgres.privileges import list_privileges
from support.postgres.roles import grant, log_in, new_roles
from support.processes.processes import wait_for
from support.queue.inspected import add, cut_reads, run
from support.queue.paused_migration import check_nothing_burnt, state_of, work_until_paused
from support.queue.zstd_module import zstd
from support.running.afterwards import act_after
from support.s3.buckets import Buckets, fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import running_fakes
from support.s3.request_log import RequestLog

COLUMNS = {"size": "byte_size", "sha256": "digest", "lines": "line_count"}
ADD_COLUMNS = "alter table public.avatars add byte_size bigint, add digest text, add line_count integer"


@pytest.fixture
def inspected(buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    """Production rows with columns for facts, on each server."""
    return prepare(make_migration(buckets, buckets))


@pytest.fixture
def site(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    return prepare(make_migration(moto_buckets, moto_buckets))


def prepare(migration: Migration, **settings: Any) -> Migration:
    migration.execute(ADD_COLUMNS)
    migration.plan["queue"] = {"inspect": {"columns": COLUMNS, **settings}}
    return migration


def facts(migration: Migration) -> dict[int, tuple[Any, ...]]:
    rows = migration.execute("select id, byte_size, digest, line_count from public.avatars order by id")
    return {row["id"]: (row["byte_size"], row["digest"], row["line_count"]) for row in rows}


def test_facts_are_written_into_the_rows_own_columns(inspected: Migration) -> None:
    plain, packed = b"one\ntwo\nthree", gzip.compress(b"a\n" * 1000) + gzip.compress(b"b\n")
    add(inspected, 1, plain)
    add(inspected, 2, packed)
    add(inspected, 3, b"")
    add(inspected, 4, None)
    assert run(inspected) == {"migrated": 3, "missing": 1}
    assert facts(inspected) == {
        1: (13, hashlib.sha256(plain).hexdigest(), 3),
        2: (len(packed), hashlib.sha256(packed).hexdigest(), 1001),
        3: (0, hashlib.sha256(b"").hexdigest(), 0),
        4: (None, None, None),
    }


def test_a_row_that_a_trigger_keeps_from_its_facts_fails_and_says_so(site: Migration) -> None:
    add(site, 1, b"one\n")
    add(site, 2, b"two\n")
    site.add_trigger("return case when old.id = 1 then null else new end;")
    assert run(site) == {"migrated": 1, "failed": 1}
    (failure,) = site.execute("select entry_id, error from rowferry.entry_failure")
    assert failure["entry_id"] == "1"
    assert "the update left the row as it was" in failure["error"]


def test_facts_that_are_there_already_are_kept_and_no_row_is_written(site: Migration) -> None:
    add(site, 1, b"one\n")
    assert run(site) == {"migrated": 1}
    before = site.execute("select xmin::text from public.avatars")
    site.execute("truncate rowferry.batch_queue cascade")
    assert run(site) == {"kept": 1}
    assert site.execute("select xmin::text from public.avatars") == before
    site.production.put(f"{TO}1", b"two\nlines\n")
    site.execute("truncate rowferry.batch_queue cascade")
    assert run(site) == {"migrated": 1}
    assert facts(site)[1][2] == 2


def test_the_size_alone_costs_no_download(logged_migration: Migration, log: RequestLog) -> None:
    migration = prepare(logged_migration, columns={"size": "byte_size"})
    add(migration, 1, b"one\n" * 1000)
    assert run(migration) == {"migrated": 1}
    assert facts(migration)[1][0] == 4000
    assert {seen.method for seen in log.seen if seen.key == f"{TO}1"} <= {"HEAD", "PUT"}


def test_large_objects_are_streamed(inspected: Migration) -> None:
    """Larger than what is taken whole, plain, gzip and zstd, one of them inflating to 30 times its size."""
    bodies = [os.urandom(3 * MiB), gzip.compress(b"some words\n" * MiB), zstd.compress(os.urandom(MiB) + b"\n" * MiB)]
    for number, body in enumerate(bodies):
        add(inspected, number, body)
    assert run(inspected) == {"migrated": 3}
    found = facts(inspected)
    assert [found[number][:2] for number in range(3)] == [(len(b), hashlib.sha256(b).hexdigest()) for b in bodies]
    assert found[1][2] == MiB


def test_the_first_bytes_tell_and_not_the_content_encoding(inspected: Migration) -> None:
    add(inspected, 1, b"plain", ContentEncoding="gzip")
    assert run(inspected) == {"migrated": 1}
    assert facts(inspected)[1] == (5, hashlib.sha256(b"plain").hexdigest(), 1)


def test_what_cannot_be_inflated_has_failed_without_a_retry(site: Migration) -> None:
    site.plan["queue"]["inspect"] |= {"max_inflated_bytes": 100_000}
    bodies = {
        "TruncatedContent": gzip.compress(os.urandom(1000))[:-9],
        "CorruptContent": gzip.compress(b"content") + b"garbage",
        "InflatedTooLarge": gzip.compress(bytes(100_001)),
    }
    for number, body in enumerate([*bodies.values(), b"plain\n"]):
        add(site, number, body)
    assert run(site) == {"migrated": 1, "failed": 3}
    assert site.verdicts() == ["ERROR"]
    assert [site.failure_of(number)[1] for number in range(3)] == list(bodies)
    assert site.failure_of(2)[2] == "InflatedTooLarge: it inflates to more than 100000 bytes (max_inflated_bytes)"


def test_a_row_that_names_another_object_by_then_is_left_alone(
    site: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        add(site, number, b"body")
    site.enqueue(queue="inspect")
    change = "update public.avatars set path = 'avatar/other' where id = 0; delete from public.avatars where id = 1"
    act_after(monkeypatch, performing, "run_inspections", lambda: site.execute(change))
    assert site.work("inspect") == {"migrated": 1, "changed": 1, "deleted": 1}
    assert facts(site)[0] == (None, None, None)


@pytest.fixture
def side_table(site: Migration) -> Migration:
    """Facts go into a table beside the rows, by the object's key."""
    site.execute(
        "create table public.object_facts (object_key text primary key, byte_size bigint check (byte_size <> 13), "
        "digest bytea, line_count integer)"
    )
    site.plan["queue"]["inspect"] |= {"table": "object_facts", "key": "object_key"}
    return site


def rows_of(migration: Migration) -> dict[str, Any]:
    rows = migration.execute("select * from public.object_facts order by object_key")
    return {row["object_key"]: row["byte_size"] for row in rows}


def test_facts_are_written_into_a_table_beside(side_table: Migration) -> None:
    for number in range(5):
        add(side_table, number, b"x" * number)
    add(side_table, 9, None)
    side_table.execute("insert into public.avatars (id, path) values (10, 'avatar/3')")
    assert run(side_table) == {"migrated": 6, "missing": 1}
    assert rows_of(side_table) == {f"{TO}{number}": number for number in range(5)}
    side_table.execute("truncate rowferry.batch_queue cascade")
    side_table.production.put(f"{TO}2", b"longer")
    assert run(side_table) == {"migrated": 1, "kept": 5, "missing": 1}
    assert rows_of(side_table)[f"{TO}2"] == 6


def test_rows_that_the_database_refuses_are_isolated(side_table: Migration) -> None:
    for number in range(40):
        add(side_table, number, b"x" * number)
    assert run(side_table) == {"migrated": 39, "failed": 1}
    assert "violates check constraint" in side_table.failure_of(13)[2]
    assert len(rows_of(side_table)) == 39


def test_refused_and_busy_rows_of_the_own_table_are_isolated(site: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "0.3")
    site.execute("alter table public.avatars add check (byte_size <> 13)")
    for number in range(20):
        add(site, number, b"x" * number)
    site.enqueue(queue="inspect")
    with uncommitted(site, "select from public.avatars where id = 4 for update"):
        assert site.work("inspect") == {"migrated": 18, "failed": 2}
    assert "violates check constraint" in site.failure_of(13)[2]
    assert site.failure_of(4)[2] == "another session holds a lock on the row"
    assert site.work_again("inspect") == {"migrated": 19, "failed": 1}
    assert facts(site)[4][0] == 4


def test_legacy_objects_can_be_inspected_and_only_their_bucket_is_opened(side_table: Migration) -> None:
    side_table.plan["queue"]["inspect"]["side"] = "legacy"
    side_table.fill(3)
    side_table.plan["production"]["bucket"] = "not-there"
    assert run(side_table) == {"migrated": 3}
    assert list(rows_of(side_table)) == [f"{FROM}u{number}/me.png" for number in (1, 2, 3)]


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_the_objects_of_a_bucket_are_inspected_without_rows(side_table: Migration, side: str) -> None:
    bucket = side_table.legacy if side == "legacy" else side_table.production
    for number in range(30):
        bucket.put(f"logs/{number:02}.gz", gzip.compress(b"line\n" * number))
    bucket.put("other/1", b"not meant")
    side_table.plan["queue"]["inspect"] |= {"of": f"s3://{side}/logs/"}
    assert run(side_table, batch_size=7) == {"migrated": 30}
    rows = side_table.execute("select object_key, line_count from public.object_facts order by 1")
    assert [tuple(row.values()) for row in rows] == [(f"logs/{number:02}.gz", number) for number in range(30)]


def test_objects_that_migrate_without_rows_are_inspected_where_they_stand(side_table: Migration) -> None:
    side_table.plan["entries"] = []
    side_table.plan["objects"] = [{"prefix": "variants/", "to": "v/"}]
    side_table.plan["queue"]["inspect"] |= {"of": "variants/*"}
    side_table.plan["queue"]["migrate"] = {"then": ["inspect"]}
    for number in range(5):
        side_table.legacy.put(f"variants/{number}", b"x" * number)
    side_table.enqueue(queue="migrate")
    side_table.work("migrate", "inspect")
    assert rows_of(side_table) == {f"v/{number}": number for number in range(5)}
    side_table.check_balance()


def test_what_was_migrated_is_inspected_next(site: Migration) -> None:
    site.plan["queue"]["migrate"] = {"then": ["inspect"]}
    site.given(20, 6, queue="migrate").work("migrate", "inspect")
    assert {row[0] for row in facts(site).values()} == {9, 10}
    site.audit()


def test_a_connection_that_breaks_in_the_body_costs_nothing(make_migration: Callable[..., Migration]) -> None:
    with running_fakes(Deviations()) as (server,), fresh_buckets(server) as buckets:
        migration = prepare(make_migration(buckets, buckets))
        body = os.urandom(48 * MiB)
        add(migration, 1, body)
        tried = cut_reads(server, 2)
        assert run(migration) == {"migrated": 1}
        assert len(tried) == 3
        assert facts(migration)[1][:2] == (len(body), hashlib.sha256(body).hexdigest())


SETTINGS = {
    "no `columns`": {},
    "none of size": {"columns": {"weight": "w"}},
    "named twice": {"columns": {"size": "a", "lines": "a"}},
    "`key` is the column of `table`": {"columns": {"size": "a"}, "key": "k"},
    "name both, or leave both out": {"columns": {"size": "a"}, "table": "t"},
    "Object contains unknown field": {"columns": {"size": "a"}, "colour": "red"},
    "have no rows": {"columns": {"size": "a"}, "of": "s3://production/"},
}


def test_settings_that_do_not_fit_are_refused(site: Migration, subtests: pytest.Subtests) -> None:
    for words, settings in SETTINGS.items():
        site.plan["queue"]["inspect"] = settings
        said = words.replace("Object contains unknown field", "colour")
        with subtests.test(words), pytest.raises(PlanError, match=said):
            find_queue("inspect").read_settings(parse_plan(site.plan, "of a test"))


def test_what_the_database_lacks_is_named(side_table: Migration) -> None:
    side_table.fill(1).write_plan()
    side_table.execute("alter table object_facts drop line_count")
    assert "no column line_count" in side_table.run("check").stdout


def test_a_column_that_cannot_hold_a_fact_is_named_by_the_failure(side_table: Migration) -> None:
    add(side_table, 1, b"one")
    side_table.execute("alter table object_facts drop byte_size, add byte_size inet")
    assert run(side_table) == {"failed": 1}
    assert side_table.failure_of(1)[2] == 'invalid input syntax for type inet: "3"'


def test_killed_workers_leave_nothing_out(side_table: Migration) -> None:
    for number in range(100, 220):
        add(side_table, number, gzip.compress(b"line\n" * number))
    side_table.write_plan()
    side_table.enqueue(8, queue="inspect")
    for _ in range(2):
        written = len(rows_of(side_table))
        with side_table.workers(2, "--processes=1", "--queue=inspect"):
            wait_for(lambda written=written: len(rows_of(side_table)) > written or side_table.statuses() == {"DONE"})
        side_table.execute("delete from rowferry.worker")  # so that no claim waits for the heartbeat of a dead worker
    assert side_table.run("worker", "--processes=1", "--until-empty").returncode == 0
    assert len(rows_of(side_table)) == 120
    assert side_table.statuses() == {"DONE"}
    side_table.check_balance()


@pytest.mark.parametrize("beside", [True, False])
def test_a_role_with_the_plans_grants_can_write_facts_and_nothing_else(
    site: Migration, beside: bool, request: pytest.FixtureRequest
) -> None:
    migration: Migration = request.getfixturevalue("side_table") if beside else site
    migration.plan["entries"][0] |= {"from": TO, "to": TO, "rows": "stay"}
    add(migration, 1, b"one\n")
    with new_roles(migration.dsn) as roles:
        grant(migration, roles)
        migration.enqueue(queue="inspect")
        found = {
            words for words in list_privileges(migration.dsn, roles["worker"]) if words.startswith("UPDATE public")
        }
        written = ("byte_size", "digest", "line_count")
        table = "object_facts" if beside else "avatars"
        assert found == {f"UPDATE public.{table}({column})" for column in written}
        migration.write_plan()
        done = migration.run(
            "worker", "--processes=1", "--until-empty", DATABASE_URL=log_in(migration, roles["worker"])
        )
        assert done.returncode == 0, done.stderr
    assert migration.counts() == {"migrated": 1}


def test_a_column_that_the_role_may_not_write_pauses_the_migration_and_says_so(
    site: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(site, 1, b"one\n")
    site.enqueue(queue="inspect")
    with new_roles(site.dsn) as roles:
        grant(site, roles)
        revoke = sql.SQL("revoke update (digest) on public.avatars from {}")
        site.execute(revoke.format(sql.Identifier(roles["worker"])))
        with monkeypatch.context() as patch:
            patch.setenv("DATABASE_URL", log_in(site, roles["worker"]))
            work_until_paused(site, queue="inspect")
    assert state_of(site)[1].startswith("The role of the workers may not write public.avatars.digest; grant it select")
    check_nothing_burnt(site)
