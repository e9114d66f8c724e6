"""Where both sides are one bucket, no copy lies on an object that is to be copied itself."""

from typing import Any

import pytest

from rowferry.errors import UsageError
from support.entries.checks import row_problems
from support.entries.migration import Migration

MOVED = {"from": "", "to": "", "production_object": "m/", "moved": {"store": [1, 2]}}
STAYS = {"from": "", "to": "", "production_object": "m/", "rows": "stay"}
URL = {"from": "//old/", "to": "//new/", "legacy_object": "", "production_object": "m/"}


@pytest.fixture
def migration(migration: Migration) -> Migration:
    """Two rows: the copy of the one would have the key of the other's object, which is the older of them."""
    migration.execute("alter table public.avatars add column store integer default 1")
    migration.plan["production"] = dict(migration.plan["legacy"])
    return migration


def give_rows(migration: Migration, form: dict[str, Any]) -> None:
    migration.plan["entries"][0].update(form)
    for number, key in enumerate(["m/x", "x"]):
        migration.add_row(number, form["from"] + key)
        migration.legacy.put(key, f"body of {key}".encode())


@pytest.mark.parametrize("form", [MOVED, STAYS, URL], ids=["moved", "stays", "url"])
def test_a_copy_that_would_lie_on_a_legacy_object_is_a_problem(migration: Migration, form: dict[str, Any]) -> None:
    give_rows(migration, form)
    (found,) = [what for what in row_problems(migration) if "one bucket" in what]
    assert "1 copy of objects of public.avatars.path would lie on legacy objects of public.avatars.path" in found
    assert "for example that of 'x' on 'm/x'" in found
    for enqueue in (migration.enqueue, migration.preview):
        with pytest.raises(UsageError, match="No object of a legacy row may be replaced: both sides are one bucket"):
            enqueue(on_conflict="overwrite")
    assert migration.batches() == []


def test_nothing_is_replaced_where_that_was_not_asked_for(migration: Migration) -> None:
    give_rows(migration, MOVED)
    assert migration.migrate() == {"migrated": 1, "conflict": 1}
    assert migration.legacy.read("m/x") == b"body of m/x"


def test_rows_that_stay_replace_no_legacy_object_unasked(migration: Migration) -> None:
    """Passes over them replace what is older than its legacy object."""
    give_rows(migration, STAYS)
    requests: tuple[dict[str, Any], ...] = ({}, {"queue": "verify", "repair": "all"})
    for request in requests:
        with pytest.raises(UsageError, match="No object of a legacy row may be replaced"):
            migration.enqueue(**request)
    assert migration.migrate(on_conflict="fail") == {"migrated": 1, "conflict": 1}


def test_a_chain_of_two_tables_is_a_problem(migration: Migration) -> None:
    migration.execute("create table public.banners (id bigint primary key, path text)")
    migration.execute("insert into public.banners values (1, 'avatar/x')")
    migration.plan["entries"].append(
        {"table": "public.banners", "id": "id", "key": "path", "from": "avatar/", "to": "banner/"}
    )
    assert not [what for what in row_problems(migration) if "one bucket" in what]
    migration.add_row(1, "image/x")
    (found,) = [what for what in row_problems(migration) if "one bucket" in what]
    assert "of public.avatars.path would lie on legacy objects of public.banners.path" in found
