"""A check finds every legacy key that could not become a production key, and those that would become the same."""

import psycopg
import pytest

from rowferry.db.entries import EntryQueries
from rowferry.plan import Entries
from rowferry_enqueue.checks.finding import quote_key
from rowferry_enqueue.checks.rows.keys import read_column_length
from rowferry_enqueue.checks.rows.pairs import may_clash, other_parameters, rename_parameters
from support.entries.checks import check_rows_of, entries_of, row_problems
from support.entries.entry_table import EntryTable
from support.entries.key_forms import PLAIN

ROOM = 1024 - len("avatar/")
LONG = ("a" * ROOM, "ä" * (ROOM // 2 + 1), "b" * ROOM + "b")
Second = tuple[dict[str, str], list[str]]
KEYS: dict[str, tuple[dict[str, str], list[str], Second | None, tuple[str, ...]]] = {
    "keys of every kind": ({}, ["image/me.png", "image/ä +%?'\"", "image///", "image/💾"], None, ()),
    "long keys": (
        {},
        [f"image/{name}" for name in LONG],
        None,
        ("2 legacy entries would have a production key of more than 1,024 bytes",),
    ),
    "an empty key": ({"to": ""}, ["image/", "image/a"], None, ("1 legacy entry would have an empty production key",)),
    "a key that would still be legacy": (
        {"to": ""},
        ["image/image/a", "image/a"],
        None,
        ("1 legacy entry would have a production key that still has the legacy form", "'image/image/a'"),
    ),
    "a key that is too long for its column": (
        {"table": "public.narrow"},
        ["image/äääääa", "image/aaaaa"],
        None,
        ("1 legacy entry would have a production key that is too long for the column",),
    ),
    "two keys that become one": (
        {},
        ["image/me.png", "image/only here.png"],
        ({"from": "banner/"}, ["banner/me.png", "banner/only there.png"]),
        ("same production key, 1 pair of them", "'image/me.png' and 'banner/me.png' both become 'avatar/me.png'"),
    ),
    "one production prefix begins with the other": (
        {},
        ["image/big/me.png"],
        ({"from": "banner/", "to": "avatar/big/"}, ["banner/me.png"]),
        ("both become 'avatar/big/me.png'",),
    ),
    "several rows of one key": ({}, ["image/me.png", "image/me.png"], ({}, ["image/me.png"]), ()),
    "rows that are no entries": ({}, ["image/me.png"], ({"from": "banner/", "where": "id < 1"}, ["banner/me.png"]), ()),
}
"""What the plan says, the keys, a second table with what the plan says of it, and words of the one problem."""


def test_keys_that_cannot_become_production_keys_or_become_the_same_are_a_problem(
    table: EntryTable, subtests: pytest.Subtests
) -> None:
    table.execute("create table public.narrow (id bigint primary key, path varchar(12))")
    table.execute("create table public.banners (id bigint primary key, path text)")
    plain = dict(entries_of(table))
    for name, (change, keys, second, words) in KEYS.items():
        table.execute("truncate public.avatars, public.narrow, public.banners")
        table.plan["entries"] = [{**plain, **change}]
        fill(table, table.plan["entries"][0]["table"], keys)
        if second is not None:
            table.plan["entries"].append({**plain, "table": "public.banners", **second[0]})
            fill(table, "public.banners", second[1])
        with subtests.test(name):
            found = row_problems(table)
            assert len(found) == bool(words)
            assert all(word in found[0] for word in words)


def fill(table: EntryTable, name: str, keys: list[str]) -> None:
    for number, key in enumerate(keys, 1):
        table.execute(f"insert into {name} values (%s, %s)", (number, key))


def test_prefixes_decide_whether_two_tables_need_a_comparison() -> None:
    def entries(old: str, new: str) -> Entries:
        return Entries("t", "id", "k", old, new)

    assert not may_clash(entries("image/", "avatar/"), entries("image/", "avatar/"))
    assert not may_clash(entries("image/", "avatar/"), entries("banner/", "poster/"))
    assert not may_clash(entries("image/", "avatar/"), entries("image/big/", "avatar/big/"))
    assert may_clash(entries("image/", "avatar/"), entries("banner/", "avatar/"))
    assert may_clash(entries("image/", "avatar/"), entries("banner/", "avatar/big/"))
    assert may_clash(entries("image/", ""), entries("banner/", "avatar/"))


def test_the_second_table_of_a_pair_has_parameters_of_its_own(database: str) -> None:
    entries = Entries("public.t", "id", "k", "a%/", "b/", "k like '%(legacy_prefix)s%%'")
    query = rename_parameters(EntryQueries(entries, PLAIN).compose_keys("production"))
    with psycopg.connect(database) as connection:
        connection.execute("create table public.t (id bigint, k text)")
        connection.execute("insert into public.t values (1, 'b/x'), (2, 'b/(legacy_prefix)s%')")
        assert connection.execute(query, other_parameters(EntryQueries(entries, PLAIN))).fetchall() == [
            ("a%/(legacy_prefix)s%", "b/(legacy_prefix)s%", None, "a%/(legacy_prefix)s%", "b/(legacy_prefix)s%")
        ]


def test_a_domain_is_as_narrow_as_its_type_and_its_constraints_are_tried(table: EntryTable) -> None:
    table.execute("create domain public.short_key as varchar(8) constraint old_keys check (value like 'image/%')")
    table.execute("alter table public.avatars alter column path type public.short_key")
    table.insert({"1": "image/1", "2": "image/22"})
    (found,) = row_problems(table)
    assert "1 legacy entry would have a production key that is too long for the column" in found
    (tried,) = [finding.what for finding in check_rows_of(table) if "constraint" in finding.what]
    assert 'violates check constraint "old_keys"' in tried


def test_long_keys_are_quoted_in_part_and_the_length_of_a_column_is_read_from_its_type() -> None:
    assert quote_key("short") == "'short'"
    assert len(quote_key("a" * 500)) < 70
    lengths = {"character varying(40)": 40, "character(7)": 7, "text": None}
    assert {name: read_column_length(name) for name in lengths} == lengths
