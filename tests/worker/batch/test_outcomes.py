"""What becomes of each entry of a batch, over real servers: all seven outcomes, and rows that follow their objects."""

from collections.abc import Callable
from typing import Any

import pytest

from support.entries.migration import Migration
from support.postgres.lock_holders import work_while_locked


def test_each_entry_has_exactly_one_of_the_seven_outcomes(any_migration: Migration) -> None:
    any_migration.add(1, "migrated.png")
    any_migration.add(2, "kept.png")
    any_migration.production.put("avatar/kept.png", any_migration.bodies["2"])
    any_migration.add(3, "changed.png")
    any_migration.add(4, "deleted.png")
    any_migration.add_row(5, "image/missing.png")
    any_migration.add(6, "conflict.png")
    any_migration.production.put("avatar/conflict.png", b"something else")
    any_migration.add_row(7, "image/" + "x" * 1018)
    any_migration.legacy.put("image/elsewhere.png", b"body of changed.png")
    before = any_migration.legacy.listing()
    any_migration.enqueue()
    rewrite = "update public.avatars set path = 'image/elsewhere.png' where id = 3"
    with work_while_locked(any_migration, rewrite, "delete from public.avatars where id = 4") as other:
        other.commit()
    assert any_migration.counts() == dict.fromkeys(
        ["migrated", "kept", "changed", "deleted", "missing", "conflict", "failed"], 1
    )
    batch = any_migration.batch()
    assert batch["status"] == "ERROR"
    for words in ("1 conflict (", "1 failed (", "1 missing ("):
        assert words in batch["error"]
    assert any_migration.rows()["1"] == "avatar/migrated.png"
    assert any_migration.rows()["2"] == "avatar/kept.png"
    assert any_migration.failure_of(3)[2] == "the row was rewritten meanwhile and now holds 'image/elsewhere.png'"
    assert any_migration.failure_of(4)[2] == "the row was deleted meanwhile"
    assert "the production key would be longer than 1024 bytes" in any_migration.failure_of(7)[2]
    assert any_migration.production.read("avatar/conflict.png") == b"something else"
    assert any_migration.legacy.listing() == before
    any_migration.audit(legacy_left=[3, 5, 6, 7])


def test_rows_that_share_an_object_all_follow_it(any_migration: Migration) -> None:
    any_migration.add(1, "shared.png", b"one for all")
    for row_id in range(2, 8):
        any_migration.add_row(row_id, "image/shared.png", b"one for all")
    assert any_migration.migrate(4) == {"migrated": 1, "kept": 6}
    assert set(any_migration.rows().values()) == {"avatar/shared.png"}
    any_migration.audit()


def test_rows_without_an_object_stay_as_they_are(any_migration: Migration) -> None:
    any_migration.fill(3)
    any_migration.add_row(9, "image/gone.png")
    any_migration.add_row(10, None)
    any_migration.add_row(11, "elsewhere/9.png")
    assert any_migration.migrate() == {"migrated": 3, "missing": 1}
    assert any_migration.failures()[0]["key"] == "image/gone.png"
    assert any_migration.rows()["9"] == "image/gone.png"
    assert any_migration.rows()["10"] is None
    assert any_migration.rows()["11"] == "elsewhere/9.png"


@pytest.mark.parametrize("name", ["avatar-2.png.bak", "avatar-2.pn", "avatar-2.png/x"])
def test_a_longer_or_shorter_key_is_not_taken_for_the_object(name: str, moto_migration: Migration) -> None:
    """Existence is a question about one key, never about a prefix."""
    moto_migration.add(1, "avatar-2.png")
    moto_migration.production.put(f"avatar/{name}", b"another")
    moto_migration.add_row(2, "image/gone.png")
    moto_migration.legacy.put("image/gone.png.bak", b"another")
    assert moto_migration.migrate() == {"migrated": 1, "missing": 1}
    moto_migration.audit(legacy_left=[2])


@pytest.mark.versions
@pytest.mark.parametrize("id_type", ["uuid", "text", "numeric(20,3)"])
def test_ids_may_be_of_any_ordered_type(
    id_type: str, make_migration: Callable[..., Migration], moto_buckets: Any
) -> None:
    migration = make_migration(moto_buckets, moto_buckets, id_type=id_type)
    migration.given(25, 10)
    assert migration.work() == {"migrated": 25}
    migration.audit()


def test_a_second_column_of_the_same_rows_moves_by_itself(migration: Migration) -> None:
    migration.execute("alter table public.avatars add column thumb text")
    migration.plan["entries"].append({**migration.plan["entries"][0], "key": "thumb", "from": "thumb/", "to": "mini/"})
    migration.fill(3)
    migration.legacy.put("thumb/2.png", b"small")
    migration.execute("update public.avatars set thumb = 'thumb/2.png' where id = 2")
    migration.migrate()
    assert migration.execute("select id, thumb from public.avatars where thumb is not null") == [
        {"id": 2, "thumb": "mini/2.png"}
    ]
    assert migration.production.read("mini/2.png") == b"small"
    assert migration.counts() == {"migrated": 4}
    migration.audit()


@pytest.mark.parametrize(
    ("on_conflict", "outcome", "body"),
    [("overwrite", "migrated", b"legacy"), ("keep", "kept", b"production"), ("fail", "conflict", b"production")],
)
def test_a_different_object_is_treated_as_asked(
    on_conflict: str, outcome: str, body: bytes, any_migration: Migration
) -> None:
    for number in range(1, 4):
        any_migration.add(number, f"{number}.png", b"legacy")
        any_migration.production.put(f"avatar/{number}.png", b"production")
    assert any_migration.migrate(on_conflict=on_conflict) == {outcome: 3}
    assert any_migration.production.read("avatar/2.png") == body
    assert any_migration.rows()["2"] == ("image/2.png" if outcome == "conflict" else "avatar/2.png")
