"""A mistyped table or column is answered with the name that was meant, and names come before buckets."""

from typing import Any

import pytest

from support.entries.checks import check, check_rows_of, entries_of
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.s3.request_log import RequestLog

MEANT: tuple[tuple[dict[str, Any], str], ...] = (
    ({"table": "public.avatar"}, "(did you mean public.avatars?)"),
    ({"table": "avatrs"}, "(did you mean avatars?)"),
    ({"key": "pth"}, "(did you mean path?)"),
    ({"id": "idd"}, "(did you mean id?)"),
    ({"id": "ID"}, "(did you mean id?)"),
    ({"moved": {"stroage": ["a", "b"]}}, "(did you mean storage?)"),
    ({"to": "image/", "from": "image/", "rows": "stay", "changed": "updated"}, "(did you mean updated_at?)"),
    ({"key": "zzz"}, "correct `key` in the plan"),  # like no other
)


def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(table: EntryTable, subtests: pytest.Subtests) -> None:
    table.execute("alter table public.avatars add column storage text, add column updated_at timestamptz")
    plain = dict(entries_of(table))
    for change, words in MEANT:
        table.plan["entries"] = [{**plain, **change}]
        with subtests.test(words):
            (remedy,) = [finding.remedy for finding in check_rows_of(table) if finding.level == "problem"]
            assert remedy.endswith(words)


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
