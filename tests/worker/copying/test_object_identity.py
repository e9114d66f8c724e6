"""An object arrives as it was: under its own key, byte for byte, with its properties and tags."""

import unicodedata
from datetime import UTC, datetime

import pytest

from support.entries.migration import Migration

DAY = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


PROPERTIES = {
    "ContentType": "image/png",
    "CacheControl": "public, max-age=60",
    "ContentDisposition": 'attachment; filename="me & you.png"',
    "ContentEncoding": "gzip",
    "ContentLanguage": "de-CH",
    "Metadata": {"author": "me", "note": "two  words, 100 % + more"},
}


def test_an_object_keeps_its_properties_and_tags_and_an_empty_one_moves_as_well(any_migration: Migration) -> None:
    any_migration.add(
        1, "me.png", **PROPERTIES, Expires=DAY, Tagging="kind=avatar+picture&owner=a%2Bb%3Dc%40d%3A%2F_.-&empty="
    )
    any_migration.add(2, "empty.png", b"")
    before = any_migration.legacy.head("image/me.png")
    tags = any_migration.legacy.tags("image/me.png")
    assert any_migration.migrate() == {"migrated": 2}
    found = any_migration.production.head("avatar/me.png")
    assert {name: found.get(name) for name in PROPERTIES} == {name: before.get(name) for name in PROPERTIES}
    assert {name: before.get(name) for name in PROPERTIES} == PROPERTIES
    assert found.get("ExpiresString") == before.get("ExpiresString")
    assert tags == any_migration.production.tags("avatar/me.png")
    assert tags["kind"] == "avatar picture"
    any_migration.audit()


KEYS = [
    "with space.png", "plus+plus.png", "100%.png", "%41.png", "a?b=c&d=e#f", "quote\"s'.png", "emoji🦊.png",
    "back\\slash", "semi;colon:at@comma,", "tilde~star*(round)[square]{curly}|^`$!", "<xml>&amp;", "tab\there",
    unicodedata.normalize("NFC", "café.png"), unicodedata.normalize("NFD", "café-2.png"), "日本語/ü.png",
    "three...dots", "-", ".hidden", "x" * 200,
]  # fmt: skip
ODD_KEYS = [
    "double//slash.png", "/leading.png", "//", "trailing/", "a", "a/b", "a/./b", "a/b/../c", " ", "x" * 1000,
    unicodedata.normalize("NFC", "ä"), unicodedata.normalize("NFD", "ä"), "a?versionId=3",
    "\u202eright-to-left", "\x7f",
]  # fmt: skip


def test_keys_are_copied_byte_for_byte(any_migration: Migration) -> None:
    for row_id, name in enumerate(KEYS):
        any_migration.add(row_id, name)
    any_migration.migrate()
    assert any_migration.failures() == []
    assert set(any_migration.production.listing()) == {f"avatar/{name}" for name in KEYS}
    assert set(any_migration.rows().values()) == {f"avatar/{name}" for name in KEYS}
    any_migration.audit()


@pytest.mark.parametrize("transfer", ["server", "stream"])
def test_even_the_oddest_keys_are_copied_byte_for_byte(transfer: str, moto_migration: Migration) -> None:
    """Those that not every server can hold: here, moto, which holds all of them."""
    moto_migration.plan["migration"]["transfer"] = transfer
    for row_id, name in enumerate(ODD_KEYS):
        moto_migration.add(row_id, name)
    moto_migration.migrate()
    assert moto_migration.failures() == []
    assert set(moto_migration.rows().values()) == {f"avatar/{name}" for name in ODD_KEYS}
    moto_migration.audit()
