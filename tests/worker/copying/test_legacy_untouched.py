"""Nothing in the legacy bucket is ever written or deleted, by any command: the servers' own records say so."""

import pytest

from support.entries.migration import Migration
from support.s3.request_log import RequestLog

READING = {"GET", "HEAD"}


@pytest.fixture
def mixed(migration: Migration) -> Migration:
    """A migration with every kind of entry: to copy, to keep, in conflict, missing, large."""
    migration.fill(20)
    migration.production.put("avatar/u2/me.png", migration.bodies["2"])
    migration.production.put("avatar/u3/me.png", b"something else")
    migration.add_row(100, "image/missing.png")
    migration.add(101, "large.png", b"0123456789abcdef" * 600_000)
    return migration.write_plan()


def check_log(migration: Migration, log: RequestLog) -> None:
    """Assert that every request to the legacy bucket only read, and that some did."""
    to_legacy = [seen for seen in log.seen if seen.bucket == migration.legacy.bucket]
    assert to_legacy
    assert {seen.method for seen in to_legacy} <= READING
    assert log.written(migration.production.bucket)


@pytest.mark.parametrize("on_conflict", ["fail", "keep", "overwrite"])
@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_a_worker_only_reads_the_legacy_bucket(
    transfer: str, on_conflict: str, mixed: Migration, log: RequestLog
) -> None:
    mixed.plan["migration"]["transfer"] = transfer
    before = mixed.legacy.listing()
    mixed.enqueue(7, on_conflict=on_conflict)
    for _ in range(2):
        mixed.work()
        mixed.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    assert mixed.counts()["migrated"] >= 18
    assert mixed.legacy.listing() == before
    check_log(mixed, log)


@pytest.mark.must("a whole migration")
def test_a_whole_migration_from_its_checks_to_its_last_count_only_reads_the_legacy_bucket(
    mixed: Migration, log: RequestLog
) -> None:
    before = mixed.legacy.listing()
    for arguments, status in [
        (["init"], 0),
        (["check"], 0),
        (["estimate"], 0),
        (["status"], 0),
        (["migrate", "--yes", "--processes", "1", "--batch-size", "7"], 1),
        (["errors"], 0),
        (["requeue", "--all"], 0),
        (["migrate", "--yes", "--processes", "1", "--overwrite"], 1),
    ]:
        done = mixed.run_here(*arguments)
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
    assert mixed.legacy.listing() == before
    mixed.audit(legacy_left=[100])
    check_log(mixed, log)
