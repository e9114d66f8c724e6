"""The fault of a whole side is not held against entries: batches are released, and the migration is paused."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from rowferry.db.connection import connect
from rowferry.plan import SideName
from rowferry.s3 import retry
from rowferry_worker.batch.sides import faults
from rowferry_worker.batch.sides.asking import ask
from rowferry_worker.batch.sides.judgement import Suspicion
from rowferry_worker.batch.sides.questions import ask_of_nothing
from rowferry_worker.migration import MigrationContextCache
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.held_batches import claim
from support.queue.paused_migration import check_nothing_burnt, state_of, work_until_paused
from support.s3.request_log import LoggedRequest, RequestLog, from_first, s3_error, writes_of

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


Matches = Callable[[LoggedRequest], bool]
PUBLIC, COPIED = {"acl": "public-read"}, {"acl": "copy"}


def every_write(seen: LoggedRequest) -> bool:
    return seen.writes_object


def sends_acl(seen: LoggedRequest) -> bool:
    return "x-amz-acl" in seen.headers


FAULTS: dict[str, tuple[dict[str, str], Matches, int, str, str]] = {
    "expired": ({}, every_write, 400, "ExpiredToken", "renew the production credentials"),
    "key": ({}, every_write, 403, "InvalidAccessKeyId", "set ROWFERRY_PRODUCTION_ACCESS_KEY_ID"),
    "quota": ({}, every_write, 403, "QuotaExceeded", "make room there, or raise the quota"),
    "denied": ({}, every_write, 403, "AccessDenied", "refuses CopyObject for any key"),
    "bucket": ({}, every_write, 404, "NoSuchBucket", "create the bucket again, or correct the plan"),
    "ACL": (PUBLIC, sends_acl, 403, "AccessDenied", "refuses CopyObject for any key"),
    "no ACLs": (PUBLIC, sends_acl, 400, "AccessControlListNotSupported", "leave `acl` out of [production]"),
    "legacy ACL": (
        COPIED,
        lambda seen: seen.query.startswith("acl"),
        403,
        "AccessDenied",
        "refuses GetObjectAcl for any key",
    ),
}
"""What the plan says of production objects, which requests are refused and how, and words of the reason."""


@pytest.fixture
def many(migration: Migration) -> Migration:
    """Forty entries in ten batches."""
    return migration.given(40, 4).write_plan()


@pytest.mark.by_day("denied", "expired", "ACL", "no ACLs", "legacy ACL")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_side_pauses_the_migration_and_burns_nothing(
    fault: str, many: Migration, log: RequestLog
) -> None:
    of_plan, matches, status, code, words = FAULTS[fault]
    many.plan["production"] |= of_plan
    many.enqueue(4)
    with log.refusing(matches, status, code):
        work_until_paused(many)
    is_paused, reason = state_of(many)
    assert is_paused
    assert reason.startswith(f"The {'legacy' if of_plan == COPIED else 'production'} bucket ")
    assert code in reason
    assert words in reason
    check_nothing_burnt(many)
    many.run_here("resume")
    assert state_of(many) == (False, "")
    if not of_plan:  # the server of this test knows no ACLs
        many.work()
        assert many.statuses() == {"DONE"}
        many.audit()


def test_no_more_of_a_batch_is_sent_once_its_side_is_at_fault(migration: Migration, log: RequestLog) -> None:
    migration.given(200, 200)
    with log.refusing(lambda seen: bool(seen.key), 403, "InvalidAccessKeyId"):
        work_until_paused(migration, parallel=4)
    assert len(log.seen) < 60


@pytest.mark.parametrize("transfer", ["copy", "stream"])
def test_a_revoked_right_to_read_pauses_the_migration(transfer: str, many: Migration, log: RequestLog) -> None:
    many.plan["migration"]["transfer"] = transfer

    def reads(seen: LoggedRequest) -> bool:
        return (bool(seen.key) and seen.bucket == many.legacy.bucket) or seen.writes_object

    with log.refusing(reads, 403, "AccessDenied"):
        work_until_paused(many)
    assert state_of(many)[0]
    check_nothing_burnt(many)
    assert [seen for seen in log.seen if seen.writes and seen.bucket == many.legacy.bucket] == []


ASKED = {
    ("HeadObject", "legacy"): ["HEAD"],
    ("GetObject", "legacy"): ["HEAD"],
    ("GetObjectTagging", "legacy"): ["GET tagging"],
    ("GetObjectAcl", "legacy"): ["GET acl"],
    ("HeadObject", "production"): ["HEAD"],
    ("CopyObject", "production"): ["PUT"],
    ("PutObject", "production"): ["POST uploads", "DELETE uploadId"],
}


@pytest.mark.parametrize(("operation", "side"), ASKED)
def test_a_right_is_asked_for_on_its_side_and_by_a_read_where_it_is_one(
    operation: str, side: SideName, many: Migration, log: RequestLog
) -> None:
    """Nothing else is ever sent to the legacy bucket, and no object is written."""
    contexts = MigrationContextCache(1)
    with closing(contexts), connect("test") as connection:
        batch = claim(connection)
        context = contexts.find(connection, batch)
        before = len(log.seen)
        ask(context, {None: ask_of_nothing(context.plan, Suspicion((side, operation), is_denied=True))})
    sent = log.seen[before:]
    assert {seen.bucket for seen in sent} == {getattr(many, side).bucket}
    assert [f"{seen.method} {seen.query.partition('=')[0]}".strip() for seen in sent] == ASKED[operation, side]
    assert many.production.listing() == {}


@pytest.mark.parametrize("begins", [1, 3], ids=["at once", "in the middle"])
def test_a_missing_object_does_not_hide_that_a_right_was_revoked(
    begins: int, migration: Migration, log: RequestLog
) -> None:
    """Whoever may list is told which key names no object, and that all others may not be read."""
    migration.fill(14)
    migration.legacy.delete("image/u14/me.png")
    migration.enqueue(14)
    migration.write_plan()

    def name_folders(seen: LoggedRequest) -> list[str]:
        return seen.headers.get("x-amz-copy-source", seen.key).split("/")

    has_begun = from_first(lambda seen: f"u{begins}" in name_folders(seen))

    def is_denied(seen: LoggedRequest) -> bool:
        reads = seen.writes_object or seen.bucket == migration.legacy.bucket
        return has_begun(seen) and reads and "u14" not in name_folders(seen)

    with log.refusing(is_denied, 403, "AccessDenied"):
        work_until_paused(migration, parallel=1)
    assert "AccessDenied" in state_of(migration)[1]
    check_nothing_burnt(migration)


DENIALS: dict[str, tuple[Callable[[LoggedRequest], bool], bytes]] = {
    "a proxy": (lambda seen: bool(seen.path), b"HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\n<html>"),
    "no right to write": (lambda seen: seen.writes and bool(seen.key), s3_error(403, "AccessDenied")),
    "no right to read": (lambda seen: seen.method == "HEAD" or seen.writes_object, s3_error(403, "AccessDenied")),
    "no right to read tags": (lambda seen: seen.query.startswith("tagging"), s3_error(403, "AccessDenied")),
}


@pytest.mark.parametrize("denial", DENIALS)
def test_the_last_objects_of_a_batch_are_not_held_to_be_forbidden_where_everything_is(
    denial: str, migration: Migration, log: RequestLog
) -> None:
    migration.plan["migration"] |= {"transfer": "stream"} if "tags" in denial else {}
    migration.fill(8)
    for number in range(1, 9) if "tags" in denial else ():
        migration.legacy.tag(f"image/u{number}/me.png", {"kind": "cat"})
    migration.enqueue(8)
    migration.write_plan()
    matches, answer = DENIALS[denial]
    has_begun = from_first(lambda seen: "u7" in seen.path.split("/") or "/u7/" in str(seen.headers))
    with log.answering(lambda seen: has_begun(seen) and matches(seen), answer):
        migration.work(parallel=1)
    (attempt,) = migration.attempts()
    assert (attempt["verdict"], migration.batch()["attempts"], migration.failures()) == ("RELEASED", 0, [])
    assert "for any key" in attempt["error"]


def test_a_server_that_knows_nothing_any_more_makes_no_missing_entries(migration: Migration, log: RequestLog) -> None:
    """A web server in its place says 404 to everything, from the middle of a batch on."""
    migration.plan["migration"]["multipart_threshold_bytes"] = 5 * 1024**2  # HEAD comes first, whose 404 says no more
    migration.given(12, 12).write_plan()
    with log.answering(from_first(lambda seen: "u6" in seen.key.split("/")), NOT_FOUND):
        work_until_paused(migration, parallel=1)
    assert "NoSuchBucket" in state_of(migration)[1]
    check_nothing_burnt(migration)


def test_an_object_that_was_not_found_for_a_moment_is_not_missing(migration: Migration, log: RequestLog) -> None:
    migration.plan["migration"]["multipart_threshold_bytes"] = 5 * 1024**2
    migration.fill(4)
    migration.legacy.delete("image/u4/me.png")
    migration.enqueue()
    asked = set[str]()

    def is_out(seen: LoggedRequest) -> bool:
        is_first = seen.method == "HEAD" and bool(seen.key) and seen.path not in asked
        asked.add(seen.path)
        return is_first

    with log.answering(is_out, NOT_FOUND):
        migration.work()
    assert migration.verdicts() == ["RELEASED"]
    assert migration.batch()["attempts"] == 0
    assert migration.work_again() == {"migrated": 3, "missing": 1}


def test_an_operation_that_fails_for_half_an_hour_pauses_the_migration(
    many: Migration, log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "PAUSE_AFTER", timedelta(0))
    monkeypatch.setattr(retry, "REQUEST_BASE", timedelta(milliseconds=1))
    with log.refusing(every_write, 500, "InternalError"):
        work_until_paused(many)
    assert "CopyObject has failed for every object for" in state_of(many)[1]
    check_nothing_burnt(many)


def test_one_object_that_may_not_be_copied_is_an_error_of_its_own(migration: Migration, log: RequestLog) -> None:
    """Though nothing else is in its batch: the same is allowed for another key."""
    migration.given(3, 1)
    with log.refusing(writes_of(range(2, 3)), 403, "AccessDenied"):
        migration.work()
    assert state_of(migration) == (False, "")
    assert migration.counts() == {"migrated": 2, "failed": 1}
    assert migration.failure_of(2)[1] == "CopyObject: AccessDenied"
    migration.audit(legacy_left=[2])


def test_a_success_between_two_faults_begins_the_count_anew(many: Migration, log: RequestLog) -> None:
    with many.at_work() as take_turn:
        for _ in range(4):
            with log.refusing(every_write, 507, "InsufficientStorage"):
                wait_for(take_turn)
            wait_for(lambda: take_turn() and many.verdicts()[-1] == "DONE")
    assert state_of(many) == (False, "")


def test_a_bucket_that_is_removed_while_workers_run_makes_no_missing_entries(
    versitygw_migration: Migration, request: pytest.FixtureRequest
) -> None:
    migration = versitygw_migration.given(6, 1)
    with migration.at_work() as take_turn:
        take_turn()
        for key in migration.legacy.listing():
            migration.legacy.client.delete_object(Bucket=migration.legacy.bucket, Key=key)
        migration.legacy.client.delete_bucket(Bucket=migration.legacy.bucket)
        wait_for(lambda: take_turn() is None or state_of(migration)[0])
    is_paused, reason = state_of(migration)
    assert is_paused
    assert "NoSuchBucket" in reason
    assert migration.failures() == []
    assert sorted(migration.statuses()) == ["DONE", "INIT"]


def test_migrate_ends_with_the_reason(many: Migration, log: RequestLog) -> None:
    with log.refusing(lambda seen: seen.writes_object and seen.key.startswith("avatar/u"), 507, "InsufficientStorage"):
        ended = many.run_here("migrate", "--yes", "--no-objects", "--processes", "1")
    assert ended.returncode == 1, ended.stderr
    words = [line for line in ended.stdout.splitlines() if line.startswith("Migration avatars is paused since ")][-1]
    assert "make room there" in words
    assert words.endswith("Next: fix that, run `rowferry resume`, then this command again. More: docs/runbook.md")
    assert many.failures() == []
    refused = many.run_here("migrate", "--yes", "--no-objects", "--processes", "1")
    assert refused.returncode == 2
    assert "make room there" in refused.stderr
    assert "rowferry resume" in refused.stderr
