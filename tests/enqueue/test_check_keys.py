"""A check finds every legacy key that could not become a production key, and those that would become the same."""

import psycopg
import pytest

from rowferry.db.entries import EntryQueries
from rowferry.plan import Entries
from rowferry_enqueue.checks.finding import quote_key
from rowferry_enqueue.checks.rows.clashes import compose_other, may_clash, other_parameters
from rowferry_enqueue.checks.rows.keys import read_column_length
from support.entries.checks import add_second_table, check_rows_of, entries_of, row_problems
from support.entries.entry_table import EntryTable
from support.entries.key_forms import PLAIN


@pytest.mark.parametrize("name", ["me.png", "ä +%?'\"", "//", "💾"])
def test_keys_of_every_kind_are_fine(table: EntryTable, name: str) -> None:
    table.insert({"1": f"image/{name}"})
    assert row_problems(table) == []


def test_a_production_key_of_more_than_1024_bytes_is_a_problem(table: EntryTable) -> None:
    room = 1024 - len("avatar/")
    table.insert({"1": f"image/{'a' * room}", "2": f"image/{'ä' * (room // 2 + 1)}", "3": f"image/{'b' * room}b"})
    (found,) = row_problems(table)
    assert "2 legacy entries would have a production key of more than 1,024 bytes" in found


def test_an_empty_production_key_is_a_problem(table: EntryTable) -> None:
    entries_of(table)["to"] = ""
    table.insert({"1": "image/", "2": "image/a"})
    (found,) = row_problems(table)
    assert "1 legacy entry would have an empty production key" in found


def test_a_production_key_that_would_still_be_legacy_is_a_problem(table: EntryTable) -> None:
    entries_of(table)["to"] = ""
    table.insert({"1": "image/image/a", "2": "image/a"})
    (found,) = row_problems(table)
    assert "1 legacy entry would have a production key that still has the legacy form" in found
    assert "'image/image/a'" in found


def test_a_production_key_that_is_too_long_for_its_column_is_a_problem(table: EntryTable) -> None:
    table.execute("alter table public.avatars alter column path type varchar(12)")
    table.insert({"1": "image/äääääa", "2": "image/aaaaa"})
    (found,) = row_problems(table)
    assert "1 legacy entry would have a production key that is too long for the column" in found


def test_two_legacy_keys_that_become_one_production_key_are_a_problem(table: EntryTable) -> None:
    add_second_table(table, **{"from": "banner/"})
    table.insert({"1": "image/me.png", "2": "image/only here.png"})
    table.execute("insert into public.banners values (7, 'banner/me.png'), (8, 'banner/only there.png')")
    (found,) = row_problems(table)
    assert "same production key, 1 pair of them" in found
    assert "'image/me.png' and 'banner/me.png' both become 'avatar/me.png'" in found


def test_two_legacy_keys_meet_where_one_production_prefix_begins_with_the_other(table: EntryTable) -> None:
    add_second_table(table, **{"from": "banner/", "to": "avatar/big/"})
    table.insert({"1": "image/big/me.png"})
    table.execute("insert into public.banners values (7, 'banner/me.png')")
    (found,) = row_problems(table)
    assert "both become 'avatar/big/me.png'" in found


def test_several_rows_of_one_legacy_key_are_fine(table: EntryTable) -> None:
    add_second_table(table)
    table.insert({"1": "image/me.png", "2": "image/me.png"})
    table.execute("insert into public.banners values (7, 'image/me.png')")
    assert row_problems(table) == []


def test_rows_that_are_no_entries_do_not_clash(table: EntryTable) -> None:
    add_second_table(table, **{"from": "banner/", "where": "id < 5"})
    table.insert({"1": "image/me.png"})
    table.execute("insert into public.banners values (7, 'banner/me.png')")
    assert row_problems(table) == []


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
    query = compose_other(EntryQueries(entries, PLAIN), "production_keys")
    with psycopg.connect(database) as connection:
        connection.execute("create table public.t (id bigint, k text)")
        connection.execute("insert into public.t values (1, 'b/x'), (2, 'b/(legacy_prefix)s%')")
        assert connection.execute(query, other_parameters(EntryQueries(entries, PLAIN))).fetchall() == [
            ("b/(legacy_prefix)s%",)
        ]


def test_long_keys_are_quoted_in_part() -> None:
    assert quote_key("short") == "'short'"
    assert len(quote_key("a" * 500)) < 70


def test_a_domain_is_as_narrow_as_its_type_and_its_constraints_are_told(table: EntryTable) -> None:
    table.execute("create domain public.short_key as varchar(8) constraint old_keys check (value like 'image/%')")
    table.execute("alter table public.avatars alter column path type public.short_key")
    table.insert({"1": "image/1", "2": "image/22"})
    (found,) = row_problems(table)
    assert "1 legacy entry would have a production key that is too long for the column" in found
    (told,) = [finding.what for finding in check_rows_of(table) if "constraint" in finding.what]
    assert told.startswith("the new keys of public.avatars.path have to satisfy the constraint old_keys CHECK")


def test_the_length_of_a_column_is_read_from_its_type() -> None:
    assert read_column_length("character varying(40)") == 40
    assert read_column_length("character(7)") == 7
    assert read_column_length("text") is None
