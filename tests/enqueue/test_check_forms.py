"""A check finds what is wrong with URLs, states, documents and computed keys, and shows what becomes of them."""

from typing import Any

import pytest

from rowferry.errors import UsageError
from support.entries.checks import check, check_rows_of, entries_of, row_problems
from support.entries.entry_table import EntryTable
from support.entries.forms import FORMS, Form
from support.entries.migration import Migration
from support.entries.prepared_forms import prepare_plainly

STATE: dict[str, Any] = {"from": "", "to": "", "moved": {"store": ["old", "new"]}}


def whats(table: EntryTable, words: str) -> list[str]:
    return [found.what for found in check_rows_of(table) if words in found.what]


def refused(table: EntryTable, words: str) -> str:
    """Return the problem with these words, which an enqueue has refused as well, with its remedy."""
    (found,) = [found for found in check_rows_of(table) if found.level == "problem" and words in found.what]
    for enqueue in (table.enqueue, table.preview):
        with pytest.raises(UsageError) as caught:
            enqueue()
        assert found.what in str(caught.value)
        assert found.remedy in str(caught.value)
        assert str(caught.value).count("\n") == 0
    return f"{found.what}; {found.remedy}"


@pytest.fixture
def table(table: EntryTable) -> EntryTable:
    table.execute("create type public.place as enum ('old', 'new', 'other')")
    table.execute("alter table public.avatars add column store text, add column number integer, add column place place")
    table.execute("alter table public.avatars add column short varchar(3), add column done boolean")
    table.execute("alter table public.avatars add column shop text generated always as (store) stored")
    table.insert({"1": "image/1", "2": "image/2"})
    table.execute("update public.avatars set store = 'old', number = 1, place = 'old', short = 'old', done = false")
    return table


def name_shown(key: str, form: Form) -> str:
    """Return what is shown of an object: its key, or that of the folder that a row names."""
    if "names" not in form.entries:
        return key
    first = form.entries["production_object"]
    depth = 3 if key.startswith(first) else 2
    return "/".join(key.split("/")[:depth]) + "/"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_fits_has_no_problem_and_shows_what_becomes_of_it(migration: Migration, name: str) -> None:
    form = FORMS[name]
    prepare_plainly(migration, form)
    findings = check(migration, allow_empty=False)
    assert [found.what for found in findings if found.level == "problem"] == []
    assert not [found for found in findings if "verify and revert" in found.what]
    told = "\n".join(found.what for found in findings)
    for key, new_key in form.objects.items():
        old, new = name_shown(key, form), name_shown(new_key, form)
        is_further = old.startswith(("s/", "tiny/", "thumbs/"))  # not the first object of its row
        assert f"{old!r} becomes {new!r}" in told or f"{old!r} keeps its key" in told or is_further
    assert "with usable production keys" in told
    assert ("sampled folders hold objects" if "names" in form.entries else "sampled legacy objects exist") in told


def test_an_example_shows_the_text_and_the_object_where_they_differ(migration: Migration) -> None:
    migration.insert({"1": "//old/1.png"})
    migration.legacy.put("1.png", b"body")
    change = {"from": "//old/", "to": "//cdn/u/", "legacy_object": "", "production_object": "u/"}
    entries_of(migration).update(change)
    told = [found.what for found in check(migration) if "for example" in found.what]
    assert told == [
        "public.avatars.path: for example '//old/1.png' becomes '//cdn/u/1.png', "
        "and its object '1.png' becomes 'u/1.png'"
    ]


def test_texts_that_name_one_object_do_not_clash(table: EntryTable) -> None:
    change = {"from": "https://old/", "to": "https://new/", "legacy_object": "", "encoding": "percent"}
    entries_of(table).update(change, production_object="")
    table.insert({"3": "https://old/a%20b", "4": "https://old/a b?v=1", "5": "https://new/a%20b#x"})
    assert [found.what for found in check_rows_of(table) if "production keys" in found.what] == [
        "public.avatars.path: 2 legacy entries with usable production keys"
    ]
    assert "1 legacy key becomes one that production entries have already" in "\n".join(whats(table, "legacy key"))


def test_different_objects_that_become_one_are_found_in_every_form(table: EntryTable) -> None:
    """A URL, a document, and a computed key of another bucket's folder become the same production key."""
    folders = {"legacy_object": "one/", "production_object": "all/"}
    entries_of(table).update({**STATE, "objects": "'one/' || id || '.png'", **folders})
    table.execute("create table public.urls (id bigint primary key, url text)")
    table.execute("insert into public.urls values (7, '//h/two/%31.png')")
    table.execute("create table public.docs (id bigint primary key, data jsonb)")
    table.execute("""insert into public.docs values (8, '{"v": ["three/x.png", "three/2.png"]}')""")
    url = {"from": "//h/two/", "to": "//n/", **folders, "legacy_object": "two/", "encoding": "percent"}
    table.plan["entries"] += [
        {"table": "public.urls", "id": "id", "key": "url", **url},
        {"table": "public.docs", "id": "id", "key": "data", "path": "$.v[*]", "from": "three/", "to": "all/"},
    ]
    found = row_problems(table)
    assert len(found) == 2
    assert "'one/1.png' and 'two/1.png' both become 'all/1.png'" in found[0]
    assert "'one/2.png' and 'three/2.png' both become 'all/2.png'" in found[1]


def test_computed_keys_outside_the_prefix_are_counted(table: EntryTable) -> None:
    entries_of(table).update(
        STATE, objects="case id when 1 then 'image/1' else 'elsewhere/2' end", legacy_object="image/"
    )
    (found,) = row_problems(table)
    assert found == (
        "public.avatars.path: 1 legacy object would have computed keys that do not begin with `legacy_object`, "
        "for example 'elsewhere/2'"
    )


def test_rows_for_which_an_expression_yields_nothing_are_counted(table: EntryTable) -> None:
    for expression in ("case id when 1 then 'a' end", "case id when 1 then 'a' else '' end"):
        entries_of(table).update(STATE, objects=expression)
        assert row_problems(table) == []
        assert whats(table, "no entry") == [
            "public.avatars.path: 1 row has a legacy text and is no entry, since `objects` yields null or nothing, "
            "for example id 2"
        ]
    entries_of(table)["optional"] = "'image/thumb/' || id"
    assert row_problems(table) == []
    (found,) = whats(table, "no entry")
    assert "objects of `optional` are not copied for 1 of them" in found
    entries_of(table)["objects"] = "null::text"
    (found,) = row_problems(table)
    assert "`objects` yields nothing for any row, so no row is an entry and no object of `optional` is copied" in found


UNUSABLE = (
    ("objects", "id", "operator does not exist"),
    ("objects", "'a/' || nonsense", 'column "nonsense" does not exist'),
    ("optional", "'a/' ||", "syntax error"),
    ("optional", "jsonb_build_array('a')", "operator does not exist"),
    ("objects", "unnest(array['a', 'b'])", "put the rows that it yields into an array: array(select …)"),
    ("where", "nonsense > 1", 'column "nonsense" does not exist'),
    ("where", "path >", "syntax error"),
    ("where", "id", "must be type boolean"),
    (
        "where",
        "'{bad}'::jsonb is null",
        "invalid input syntax for type json; write a condition over the table's columns",
    ),
)


def test_an_expression_that_cannot_be_used_is_named_with_the_words_of_postgresql(
    table: EntryTable, subtests: pytest.Subtests
) -> None:
    plain = dict(entries_of(table))
    for field, expression, words in UNUSABLE:
        table.plan["entries"] = [{**plain, **STATE, "objects": "'a/' || id", field: expression}]
        with subtests.test(f"{field} {expression}"):
            assert words in refused(table, f"the `{field}` of public.avatars.path cannot be used: ")


def test_an_expression_that_fails_at_a_row_is_named_also_where_only_workers_compute_it(table: EntryTable) -> None:
    fails = "public.avatars.path cannot be read: division by zero"
    plain = {**entries_of(table), **STATE}
    for field, expression in (("objects", "(1 / (number - 1))::text"), ("where", "1 / (number - 1) = 1")):
        table.plan["entries"] = [{**plain, field: expression}]
        assert refused(table, fails) == f"{fails}; correct `moved` or `{field}` in the plan"
    table.plan["entries"] = [{**plain, "objects": "'a/' || id", "optional": "(1 / (number - 1))::text"}]
    assert row_problems(table) == [fails]


def test_a_state_may_be_of_any_type(table: EntryTable, subtests: pytest.Subtests) -> None:
    states = {"store": ["old", "new"], "number": [1, 2], "place": ["old", "new"], "done": [False, True]}
    table.execute("alter table public.avatars add column padded char(5) default 'old'")
    states |= {"short": ["old", "new"], "padded": ["old", "new"]}
    for column, values in states.items():
        entries_of(table).update(STATE, moved={column: values})
        with subtests.test(column):
            assert row_problems(table) == []
            assert table.preview()[0].entries == 2


ONE_VALUE = "in `moved.{}` of public.avatars.path are one value of"
"""Rows would have both forms at once, and move for ever."""
UNFIT_STATES: tuple[tuple[str, list[Any], str], ...] = (
    ("number", ["1", "two"], 'cannot both be values of integer: invalid input syntax for type integer: "two"'),
    ("place", ["nowhere", "new"], 'cannot both be values of place: invalid input value for enum place: "nowhere"'),
    ("done", [1, 7000000000], "cannot both be values of boolean"),
    ("shop", ["old", "new"], "public.avatars.shop is generated from other columns, so it cannot be rewritten"),
    ("nonsense", ["old", "new"], "public.avatars has no column nonsense; correct `moved` in the plan"),
    ("number", ["1", "01"], f"'1' and '01' {ONE_VALUE.format('number')}"),
    ("done", ["t", "true"], f"'t' and 'true' {ONE_VALUE.format('done')}"),
)


def test_a_state_that_a_column_cannot_hold_is_refused(table: EntryTable, subtests: pytest.Subtests) -> None:
    for column, values, words in UNFIT_STATES:
        entries_of(table).update(STATE, moved={column: values})
        with subtests.test(words):
            assert words in refused(table, words.split("; ", maxsplit=1)[0])


def test_a_state_that_is_too_long_for_its_column_is_never_cut(table: EntryTable) -> None:
    """Else it would be written cut into every row, or rows would be taken that the plan does not mean."""
    table.execute("create domain public.code as varchar(3)")
    table.execute("alter table public.avatars add column coded code default 'old', add column padded char(3)")
    table.execute("update public.avatars set padded = 'old'")
    for column, type_name in (("short", "varying"), ("coded", "varying"), ("padded", "character")):
        entries_of(table).update(STATE, moved={column: ["old", "newer"]})
        (found,) = whats(table, "PostgreSQL refuses to update public.avatars.path: value too long for type character")
        assert type_name in found
        entries_of(table).update(STATE, moved={column: ["older", "new"]})
        assert table.preview()[0].entries == 0


def test_states_tell_the_rows_of_one_column_apart_and_one_for_two_columns_is_refused(table: EntryTable) -> None:
    """The first that moves would say that the object of the other has moved as well."""
    entries_of(table).update(STATE, name="one")
    table.plan["entries"].append({**entries_of(table), "name": "two", "moved": {"store": ["older", "newer"]}})
    assert [found for found in row_problems(table) if "same rows" in found] == []
    table.plan["entries"][1]["moved"] = {"store": ["older", "new"]}
    refused(table, "one and two name the same rows and the same column")
    table.plan["entries"][1] = {**entries_of(table), "name": "two", "key": "short"}
    told = refused(table, "one and two both set store")
    assert "name all objects of a row in the `objects` of one [[entries]]" in told
