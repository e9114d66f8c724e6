"""`rowferry plan --discover` finds keys in every form of text, and tells what no plan can rewrite."""

import hashlib
import tomllib
from pathlib import Path

import pytest

from support.entries.discovering import Discovering, Plan, on_moto
from support.s3.buckets import Buckets


def read_notes(found: Discovering) -> str:
    """Return the plan with its comments in one line each."""
    return found.plan_path.read_text().replace("\n# ", " ")


# Texts


def test_urls_inside_longer_texts_are_found(found: Discovering) -> None:
    found.execute("create table articles (id bigint primary key, body text)")
    url = found.url_of(found.legacy.bucket)
    text = '<p>Hello {n}, see <a href="https://example.org/{n}">this</a>.</p><img src="{url}/a/{n}.png">'
    found.insert("articles", [(n, text.format(n=n, url=url)) for n in range(12)])
    found.put(*[f"a/{n}.png" for n in range(12)])
    (entries,) = found.find_entries()
    assert (entries["within"], entries["from"]) == ("text", f"{url}/")
    assert entries["to"] == f"{found.url_of('new-media')}/"
    assert "12 of 12 sampled rows name existing objects" in read_notes(found)


def test_urls_inside_longer_texts_of_documents_are_told(found: Discovering) -> None:
    found.execute("create table tasks (id bigint primary key, data jsonb)")
    url = found.url_of(found.legacy.bucket)
    document = '{{"html": "<img src=\\"{url}/html/{n}.png\\"> {n}", "image": "{url}/image/{n}.png"}}'
    found.insert("tasks", [(n, document.format(n=n, url=url)) for n in range(12)])
    found.put(*[f"{folder}/{n}.png" for folder in ("html", "image") for n in range(12)])
    (entries,) = found.find_entries()
    assert entries["path"] == "$.image"
    assert "public.tasks.data $.html: 12 sampled rows hold URLs of objects inside longer texts" in read_notes(found)
    assert tomllib.loads(found.plan_path.read_text())["objects"] == [{"prefix": "html/"}]


def test_one_place_of_a_document_with_urls_of_two_forms_is_named_apart(found: Discovering) -> None:
    found.execute("create table surveys (id bigint primary key, data jsonb)")
    hosts = ("https://forms.example.org", "")
    found.insert("surveys", [(n, f'[{{"url": "{hosts[n % 2]}/storage/q/{n}.jpg"}}]') for n in range(12)])
    found.put(*[f"q/{n}.jpg" for n in range(12)])
    names = [one["name"] for one in found.find_entries()]
    place = "public.surveys.data $[*].url"
    assert sorted(names) == [f"{place} /storage/", f"{place} https://forms.example.org/storage/"]


def test_a_column_with_the_buckets_name_is_told(found: Discovering) -> None:
    found.execute("create table files (id bigint primary key, path text)")
    found.execute("create table settings (id bigint primary key, bucket text)")
    found.insert("files", [(n, f"a/{n}.png") for n in range(12)])
    found.insert("settings", [(1, found.legacy.bucket)])
    found.put(*[f"a/{n}.png" for n in range(12)])
    found.find_entries()
    assert "public.settings.bucket: 1 sampled row holds the name of the legacy bucket" in read_notes(found)


@on_moto
def test_documents_that_are_a_text_alone_are_read(found: Discovering) -> None:
    """Tables of settings hold JSON of any kind, the name of the bucket as well."""
    found.execute("create table settings (key text primary key, value jsonb)")
    url = found.url_of(found.legacy.bucket)
    logos = [(f"logo.{n}", f'"{url}/logos/{n}.png"') for n in range(6)]
    found.insert("settings", [*logos, ("s3.bucket", f'"{found.legacy.bucket}"'), ("size", "3"), ("tags", '["a"]')])
    found.put(*[f"logos/{n}.png" for n in range(6)])
    (entries,) = found.find_entries(production=found.production.bucket)
    assert (entries["path"], entries["from"]) == ("$", f"{url}/")
    assert "public.settings.value $: 1 sampled row holds the name of the legacy bucket" in read_notes(found)
    assert found.run("migrate", "--yes").returncode == 0
    there = (
        f"select value #>> '{{}}' from settings where value #>> '{{}}' like '{found.url_of(found.production.bucket)}/%'"
    )
    assert len(found.read_texts(there)) == 6


# Computed keys


def test_keys_that_need_the_row_of_the_owner_are_computed(found: Discovering) -> None:
    found.execute("create table sets (id bigint primary key, name text unique)")
    found.execute("create table files (id bigint primary key, owner_id bigint references sets, ref text)")
    found.insert("sets", [(n, f"set-{n}-{n * 7919:x}") for n in range(1, 6)])
    refs = [(n, n % 5 + 1, f"s3://x:{n * 104729:08x}-{n}") for n in range(40)]
    found.insert("files", refs)
    found.put(*[f"data/set-{o}-{o * 7919:x}/{ref.rpartition(':')[2]}" for _, o, ref in refs])
    (entries,) = found.find_entries()
    assert "(select o.name from sets as o where o.id = e.owner_id)" in entries["objects"]
    assert "40 of 40 sampled rows name existing objects" in read_notes(found)


def fill_by_number(found: Discovering, columns: str, values: str) -> None:
    found.execute(f"create table files (id bigint primary key, {columns})")
    found.execute(f"insert into files select n, {values} from generate_series(101, 160) as n")


COMPUTED = {
    "by a text in a document": ("attrs jsonb", "jsonb_build_object('file', md5(n::text))",
                                "'boards/' || id || '/' || (attrs ->> 'file')"),
    "by a number, in a folder of another name": ("caption text", "'c'", "'media/store/' || id || '.jpg'"),
    "by an MD5": ("code text", "'C-' || n", "'d/' || md5(code)"),
    "by a SHA-256 and slices of it": ("code text", "'C-' || n",
        "'d/' || left(encode(sha256(convert_to(code, 'UTF8')), 'hex'), 2) || '/' || "
        "encode(sha256(convert_to(code, 'UTF8')), 'hex')"),
    "by digits reversed": ("code bigint", "n * 7654321", "'d/' || reverse(code::text)"),
    "by groups of digits reversed": ("code bigint", "n * 7654", "'d/' || "
        "regexp_replace(reverse(lpad(code::text, 9, '0')), '(...)(...)(...)', '\\1/\\2/\\3')"),
    "by groups of digits, the last one first": ("code bigint", "n * 7654", "'d/' || "
        "regexp_replace(lpad(code::text, 9, '0'), '(...)(...)(...)', '\\3/\\2/\\1')"),
    "by the number alone": ("caption text", "'c'", "id::text"),
    "by two columns": ("code text, kind text", "md5(n::text), 'k' || n % 3", "kind || '-' || code || '.bin'"),
}  # fmt: skip


@pytest.mark.by_day("by a text in a document")
@pytest.mark.parametrize("form", COMPUTED)
def test_keys_are_computed(found: Discovering, form: str) -> None:
    columns, values, key = COMPUTED[form]
    fill_by_number(found, columns, values)
    found.put(*found.read_texts(f"select {key} from files"))
    (entries,) = found.find_entries()
    check_computed(found, entries)


def check_computed(found: Discovering, entries: Plan) -> None:
    """Hold the expression against the bucket."""
    computed = f"select unnest(array[{entries['objects']}]) from files"
    assert set(found.read_texts(computed)) == set(found.legacy.listing())


@pytest.mark.parametrize("schema", ["public", "extensions"])
def test_keys_are_computed_by_a_sha_1_of_pgcrypto(
    distribution_database: str, fake_buckets: Buckets, tmp_path: Path, schema: str
) -> None:
    """Some providers install extensions in a schema that the search path lacks."""
    found = Discovering(distribution_database, fake_buckets, tmp_path)
    found.execute(f"create schema if not exists {schema}")
    found.execute(f"create extension pgcrypto schema {schema}")
    fill_by_number(found, "code text", "'C-' || n")
    digest = f"encode({schema}.digest(code, 'sha1'), 'hex')"
    found.put(*found.read_texts(f"select 'd/' || left({digest}, 2) || '/' || {digest} from files"))
    (entries,) = found.find_entries()
    assert ("extensions.digest(" in entries["objects"]) == (schema == "extensions")
    check_computed(found, entries)


def test_what_computes_a_sha_1_is_told_where_it_lacks(found: Discovering) -> None:
    fill_by_number(found, "code text", "'C-' || n")
    found.put(*[f"d/{hashlib.sha1(f'C-{n}'.encode(), usedforsecurity=False).hexdigest()}" for n in range(101, 161)])
    assert found.discover().returncode == 0
    assert (
        "public.files: objects are named after a SHA-1 of its columns: run `create extension pgcrypto`"
        in read_notes(found)
    )


def test_a_columns_objects_are_found_in_all_of_their_folders(found: Discovering) -> None:
    fill_by_number(found, "name text", "'f' || n || '.png'")
    folders = ("originals", "small", "thumbs")
    found.put(*[f"{folder}/{n}/f{n}.png" for folder in folders for n in range(101, 161)])
    (entries,) = found.find_entries()
    assert entries["objects"] == "'originals/' || id::text || '/' || name"
    assert all(f"'{folder}/'" in entries["optional"] for folder in folders[1:])


def test_objects_that_only_some_rows_have_may_be_missing(found: Discovering) -> None:
    fill_by_number(found, "code text", "md5(n::text)")
    found.put(*found.read_texts("select 'd/' || left(code, 2) || '/' || code from files where id % 3 > 0"))
    (entries,) = found.find_entries()
    assert {"key", "objects"} & entries.keys() == set()
    assert entries["optional"] == "'d/' || substr(code, 1, 2) || '/' || code"


def test_a_rule_replaces_a_column_that_names_few(found: Discovering) -> None:
    """One tenant's folder is the commonest prefix of the bucket, and its rows are a part only."""
    found.execute("create table org (id bigint primary key, slug text unique)")
    found.execute("insert into org select n, 'org-' || left(md5('o' || n), 9) from generate_series(1, 6) as n")
    found.execute("create table logo (id bigint primary key, org_id bigint references org, file_name text)")
    found.execute("insert into logo select n, n % 6 + 1, 'l' || n || '.png' from generate_series(101, 160) as n")
    found.put(*found.read_texts("select 'orgs/' || slug || '/' || file_name from logo join org on org.id = org_id"))
    (entries,) = found.find_entries()
    assert entries["objects"] == ("'orgs/' || (select o.slug from org as o where o.id = e.org_id) || '/' || file_name")


# When a row changed


@pytest.mark.by_day("bigint*")
@pytest.mark.parametrize(
    ("kind", "created", "later"),
    [
        ("timestamptz", "now() - n * interval '1 h'", "now()"),
        ("bigint", "1700000000000 + n", "1700000000000 + n * 1000"),
        ("integer", "1700000000 + n", "1700000000 + n * 60"),
        ("numeric", "1700000000000000 + n", "1700000000000000 + n * 60"),
    ],
)
def test_a_column_that_may_say_when_a_row_changed_is_told(
    found: Discovering, kind: str, created: str, later: str
) -> None:
    found.execute(
        f"create table files (id bigint primary key, path text, angelegt {kind}, geaendert {kind}, size {kind})"
    )
    size = "null" if kind == "timestamptz" else "n"
    last = f"case when n % 3 = 0 then {later} else {created} end"
    found.execute(f"insert into files select n, 'a/' || n, {created}, {last}, {size} from generate_series(2, 41) as n")
    found.put(*[f"a/{n}" for n in range(2, 42)])
    (entries,) = found.find_entries()
    assert "changed" not in entries
    assert "geaendert may say when a row changed: it is never before angelegt, and later in 13 of 40" in read_notes(
        found
    )


def test_numbers_that_are_no_times_do_not_say_when_a_row_changed(found: Discovering) -> None:
    found.execute("create table files (id bigint primary key, path text, updated bigint)")
    found.insert("files", [(n, f"a/{n}", n % 3) for n in range(12)])
    found.put(*[f"a/{n}" for n in range(12)])
    (entries,) = found.find_entries()
    assert "changed" not in entries
    assert "updated holds no times" in read_notes(found)
