"""Presigned URLs are valid for one bucket: a row that holds one is left as it is, and counted by check."""

import pytest

from rowferry.keys import has_form
from rowferry.plan import Entries
from support.entries.checks import check_rows_of
from support.entries.migration import Migration
from support.queue.queue_runs import outcomes, revert, verify

OLD, NEW = "https://old.example.com/", "https://new.example.com/"
SIGNED = (
    "a.png?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=900&X-Amz-Signature=ab12",
    "a.png?AWSAccessKeyId=AKIA&Expires=1700000000&Signature=xyz%3D",
    "a.png?Expires=1&Signature=q~&Key-Pair-Id=K",
    "a.png?x-goog-signature=00",
)
URLS = Entries("t", "id", "url", OLD, NEW, legacy_object="", production_object="", encoding="percent")


@pytest.fixture
def urls(any_migration: Migration) -> Migration:
    fields = {"from": OLD, "to": NEW, "legacy_object": "", "production_object": "", "encoding": "percent"}
    any_migration.plan["entries"][0].update(fields)
    any_migration.legacy.put("a.png", b"body")
    return any_migration.insert({"1": f"{OLD}a.png?v=2", "2": f"{OLD}{SIGNED[0]}", "3": f"{OLD}{SIGNED[1]}"})


@pytest.mark.parametrize("text", SIGNED)
def test_a_presigned_url_has_no_form(text: str) -> None:
    assert not has_form(OLD + text, URLS, "legacy")
    assert not has_form(NEW + text, URLS, "production")


@pytest.mark.parametrize("text", ["a.png", "a.png?v=2", "Signature=1.png", "a.png?MySignature=1", "a.png?signature"])
def test_other_urls_keep_theirs(text: str) -> None:
    assert has_form(OLD + text, URLS, "legacy")


def test_only_rows_of_presigned_urls_are_left(urls: Migration) -> None:
    before = urls.rows()
    assert urls.migrate() == {"migrated": 1}
    assert urls.rows() == before | {"1": f"{NEW}a.png?v=2"}
    assert outcomes(verify(urls)) == {"kept": 1}
    assert outcomes(revert(urls)) == {"migrated": 1}
    assert urls.rows() == before


def test_check_counts_them(urls: Migration) -> None:
    (found,) = [finding for finding in check_rows_of(urls) if "presigned" in finding.what]
    assert found.level == "note"
    assert found.what.startswith("public.avatars.path: 2 rows hold presigned URLs, which are valid for one bucket")


def test_where_rows_stay_their_objects_are_copied(urls: Migration) -> None:
    urls.plan["entries"][0].update({"to": OLD, "rows": "stay"})
    before = urls.rows()
    assert urls.migrate() == {"migrated": 1, "kept": 2}
    assert (urls.production.read("a.png"), urls.rows()) == (b"body", before)
    assert not [finding for finding in check_rows_of(urls) if "presigned" in finding.what]
