"""Keys keep every byte behind their prefix, and SQL and Python agree on which form a key has."""

from typing import Literal

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from rowferry.batch import Entry
from rowferry.db.entries import EntryQueries
from rowferry.db.statements import statement
from rowferry.keys import MAX_KEY_BYTES, Form, PlainEntry, map_entry, map_plain
from rowferry.plan import Entries
from support.entries.entry_table import EntryTable
from support.entries.key_forms import PLAIN, form_of_key, production_key

pytestmark = [pytest.mark.versions, pytest.mark.pythons]

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
PREFIX = st.text("ab/é%_\\'", max_size=4)


def entries(legacy: str, production: str) -> Entries:
    return Entries("public.avatars", "id", "path", legacy, production)


IMAGES = entries("image/", "avatar/")


KEYS: tuple[tuple[tuple[str, str], str | None, str], ...] = (
    *((("image/", "avatar/"), key, "legacy") for key in ("image/a.png", "image/")),
    *((("image/", "avatar/"), key, "production") for key in ("avatar/a.png", "avatar/image/a.png")),
    *((("image/", "avatar/"), key, "unexpected") for key in ("image", "/image/a", "Image/a", " image/a", "", None)),
    (("", "new/"), "new/a", "production"),
    (("", "new/"), "a", "legacy"),
    (("img/", "img/v2/"), "img/v2/a", "production"),
    (("img/", "img/v2/"), "img/v1/a", "legacy"),
    (("old/", ""), "old/a", "legacy"),
    (("old/", ""), "a", "production"),
    (("img/old/", "img/"), "img/old/a", "legacy"),
    (("img/old/", "img/"), "img/a", "production"),
)


@pytest.mark.parametrize(("prefixes", "key", "form"), KEYS)
def test_the_prefix_decides_the_form_and_of_two_the_longer(
    prefixes: tuple[str, str], key: str | None, form: str
) -> None:
    assert form_of_key(key, entries(*prefixes)) == form


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(PREFIX, PREFIX, st.data())
def test_sql_and_python_agree_on_the_form_of_any_key(
    table: EntryTable, legacy: str, production: str, data: st.DataObject
) -> None:
    assume(legacy != production)
    start = st.sampled_from(["", legacy, production, legacy + production, production + legacy, legacy[:-1]])
    keys = data.draw(st.lists(st.builds(str.__add__, start, st.one_of(TEXT, PREFIX)), min_size=1, max_size=8))
    found = ask_sql(table, entries(legacy, production), keys)
    for key in keys:
        assert found[key] == form_of_key(key, entries(legacy, production)), key


FORMS = """
select e.path, {is_legacy} as legacy, {is_production} as production from unnest(%(keys)s::text[]) as e (path)
"""


def ask_sql(table: EntryTable, plan: Entries, keys: list[str]) -> dict[str, str]:
    """Return the form of each key by the conditions that every statement uses."""
    text = sql.SQL("e.path")
    conditions = {name: statement(name, text=text) for name in ("is_legacy", "is_production")}
    parameters = EntryQueries(plan, PLAIN).parameters(keys=keys)
    rows = table.execute(sql.SQL(FORMS).format(**conditions), parameters)
    assert not any(row["legacy"] and row["production"] for row in rows)
    return {
        row["path"]: "legacy" if row["legacy"] else "production" if row["production"] else "unexpected" for row in rows
    }


@given(TEXT)
@example("u1/me.png")
@example("image/")
@example("//../%2F?versionId=3 +")
def test_the_production_key_has_the_same_bytes_behind_the_other_prefix(rest: str) -> None:
    assert production_key(f"image/{rest}", IMAGES) == f"avatar/{rest}"


@given(PREFIX, PREFIX, st.lists(TEXT, unique=True, min_size=2, max_size=5))
def test_different_keys_stay_different_and_become_production(legacy: str, production: str, rests: list[str]) -> None:
    assume(legacy != production)
    plan = entries(legacy, production)
    mapped: list[str] = []
    for rest in rests:
        try:
            mapped.append(production_key(legacy + rest, plan))
        except ValueError:
            continue
    assert len(set(mapped)) == len(mapped)
    assert all(form_of_key(key, plan) == "production" for key in mapped)


@settings(max_examples=300)
@given(PREFIX, PREFIX, st.sampled_from([None, "", "k/"]), st.sampled_from(["move", "stay"]), st.data())
def test_a_batch_is_mapped_as_each_of_its_entries_is(
    legacy: str, production: str, own: str | None, rows: Literal["move", "stay"], data: st.DataObject
) -> None:
    assume(legacy != production or rows == "stay")
    plan = Entries(
        "public.avatars", "id", "path", legacy, production, legacy_object=own, production_object=own, rows=rows
    )
    start = st.sampled_from(["", legacy, production, legacy + production, production + legacy, legacy[:-1]])
    rest = st.one_of(TEXT, PREFIX, st.sampled_from(LONGEST), st.just("x" * MAX_KEY_BYTES))
    keys = data.draw(st.lists(st.builds(str.__add__, start, rest), max_size=8))
    found = [Entry("1", key) for key in keys]
    to: Form = data.draw(st.sampled_from(["legacy", "production"]))
    for entry, mapped in zip(found, map_plain(found, plan, to), strict=True):
        assert mapped in {None, map_or_refuse(entry, plan, to)}
    kept = Entry("1", f"{IMAGES.legacy_prefix}u1/é.png")
    assert list(map_plain([kept], IMAGES)) == [map_entry(kept, IMAGES)]


def map_or_refuse(entry: Entry, plan: Entries, to: Form) -> PlainEntry | None:
    try:
        return map_entry(entry, plan, to)
    except ValueError:
        return None


LONGEST = ("x" * (MAX_KEY_BYTES - 7), "é" * ((MAX_KEY_BYTES - 7) // 2))
"""Bytes of UTF-8 count, not characters."""
REFUSED = (
    *((IMAGES, f"image/{name}é", "longer than 1024 bytes") for name in LONGEST),
    *((IMAGES, key, "does not have the legacy form") for key in ("avatar/a", "elsewhere/a", "")),
    # Else it would be migrated again at the next pass, and again.
    (entries("img/old/", "img/"), "img/old/old/a", "would still have the legacy form"),
    (entries("old/", ""), "old/", "would be empty"),
)


def test_a_legacy_key_of_up_to_1024_bytes_has_a_production_key_and_no_other_has() -> None:
    for name in LONGEST:
        assert production_key(f"image/{name}", IMAGES) == f"avatar/{name}"
    for plan, key, words in REFUSED:
        with pytest.raises(ValueError, match=words):
            production_key(key, plan)
