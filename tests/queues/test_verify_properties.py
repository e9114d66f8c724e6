"""What is kept since its bytes are right is held against all that is promised to be copied, and mended if asked."""

from typing import Any

import pytest

from support.entries.checks import check
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.queue.queue_runs import verify

LOST: dict[str, dict[str, Any]] = {
    "content type": {"ContentType": "image/png"},
    "cache control": {"CacheControl": "max-age=60"},
    "metadata": {"Metadata": {"by": "me"}},
    "tags": {"Tagging": "kind=cat"},
}


@pytest.fixture
def kept(moto_migration: Migration) -> Migration:
    """An object for each property, whose earlier copy by another tool has lost it, and one that has lost nothing."""
    migration = moto_migration
    for number, properties in enumerate(LOST.values()):
        migration.add(number, f"{number}.png", b"body", **properties)
        migration.production.put(f"{TO}{number}.png", b"body")
    migration.add(9, "9.png", b"body", ContentType="image/png")
    migration.production.put(f"{TO}9.png", b"body", ContentType="image/png")
    migration.enqueue()
    return migration


def test_verify_names_what_a_kept_object_has_lost_and_repair_copies_it(kept: Migration) -> None:
    """Tags alone are put at once: an earlier attempt may have ended before it came to them."""
    (named,) = [finding for finding in check(kept) if "sampled objects that stand" in finding.what]
    assert named.what.startswith(
        "of 5 sampled objects that stand in production already, with the right bytes, 3 have other"
    )
    assert ", for example 'avatar/0.png': content-type is " in named.what
    assert "`rowferry verify --repair`" in named.remedy
    assert kept.work() == {"kept": 5}
    assert kept.execute("select fact from rowferry.server_fact where fact like 'kept%'") == [
        {"fact": "kept objects have other properties than their legacy objects"}
    ]
    kept.execute("delete from rowferry.batch_queue")
    verify(kept)
    assert kept.counts() == {"kept": 2, "conflict": 3}
    assert kept.failure_of(0)[1] == "PropertiesDiffer"
    assert "content-type is" in kept.failure_of(0)[2]
    assert "`rowferry verify --repair`" in kept.failure_of(0)[2]
    kept.execute("delete from rowferry.batch_queue")
    verify(kept, repair="older")
    assert kept.counts() == {"kept": 2, "migrated": 3}
    kept.execute("delete from rowferry.batch_queue")
    verify(kept)
    assert kept.counts() == {"kept": 5}
    kept.audit()


def test_verify_names_tags_that_are_not_those_of_the_legacy_object(moto_migration: Migration) -> None:
    migration = moto_migration
    migration.legacy.put(f"{FROM}1.png", b"body", Tagging="kind=cat")
    migration.production.put(f"{TO}1.png", b"body", Tagging="kind=dog")
    migration.add_row(1, f"{TO}1.png", b"body")
    verify(migration)
    assert migration.failure_of(1)[1] == "PropertiesDiffer"
    assert "its tags are not those of the legacy object" in migration.failure_of(1)[2]


def test_the_framing_of_a_body_is_no_property(versitygw_migration: Migration) -> None:
    """SDKs send it, and some servers keep it; a PUT that says so again is refused by others."""
    migration = versitygw_migration
    for number, transfer in enumerate(("server", "stream")):
        migration.plan["migration"]["transfer"] = transfer
        migration.add(2 * number, f"{transfer}-1", b"body", ContentEncoding="aws-chunked")
        migration.add(2 * number + 1, f"{transfer}-2", b"body", ContentEncoding="aws-chunked,gzip")
        migration.migrate()
    found = migration.production.head(f"{TO}stream-1"), migration.production.head(f"{TO}stream-2")
    assert [one.get("ContentEncoding") for one in found] == [None, "gzip"]
    migration.execute("delete from rowferry.batch_queue")
    verify(migration)
    assert migration.counts() == {"kept": 4}
