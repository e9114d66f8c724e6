"""A name that is not there is answered with what to correct, and names come before buckets."""

from typing import Any

import pytest

from support.entries.checks import check, check_rows_of, entries_of
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.s3.request_log import RequestLog

WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"table": "avatrs"}, "correct `table` in the plan, or its search_path"),
    ({"key": "pth"}, "correct `key` in the plan"),
    ({"id": "ID"}, "correct `id` in the plan"),
    ({"moved": {"stroage": ["a", "b"]}}, "correct `moved` in the plan"),
    ({"to": "image/", "from": "image/", "rows": "stay", "changed": "updated"}, "correct `changed` in the plan"),
)


def test_a_name_that_is_not_there_is_answered_with_what_to_correct(table: EntryTable) -> None:
    plain = dict(entries_of(table))
    for change, expected in WRONG:
        table.plan["entries"] = [{**plain, **change}]
        assert [finding.remedy for finding in check_rows_of(table) if finding.level == "problem"] == [expected]


def test_a_wrong_name_is_found_before_anything_is_sent_to_a_bucket(
    logged_migration: Migration, log: RequestLog
) -> None:
    logged_migration.fill(1)
    entries_of(logged_migration)["key"] = "pth"
    log.seen.clear()
    found = check(logged_migration)
    assert [finding.what for finding in found if finding.level == "problem"] == ["public.avatars has no column pth"]
    assert "the buckets were not looked at" in found[-1].what
    assert log.seen == []


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_mistyped_bucket_is_told_with_its_server(migration: Migration, side: str) -> None:
    migration.fill(1)
    bucket = migration.plan[side]["bucket"]
    migration.plan[side]["bucket"] = f"{bucket}x"
    words = f"there is no {side} bucket {bucket}x at http://127.0.0.1:"
    (remedy,) = [finding.remedy for finding in check(migration) if finding.what.startswith(words)]
    assert remedy == f"correct [{side}] in the plan"
