"""`rowferry plan --discover` finds keys in every form of text, and tells what no plan can rewrite."""

import tomllib

import pytest

from support.entries.discovering import Discovering, on_moto


def test_urls_inside_longer_texts_are_found(found: Discovering) -> None:
    url = found.url_of(found.legacy.bucket)
    text = '<p>Hello {n}, see <a href="https://example.org/{n}">this</a>.</p><img src="{url}/a/{n}.png">'
    found.make("articles", "body text", [(n, text.format(n=n, url=url)) for n in range(12)])
    found.put(*[f"a/{n}.png" for n in range(12)])
    (entries,) = found.find_entries()
    assert (entries["within"], entries["from"]) == ("text", f"{url}/")
    assert entries["to"] == f"{found.url_of('new-media')}/"
    assert "12 of 12 sampled rows name existing objects" in found.read_notes()


def test_urls_inside_longer_texts_of_documents_are_told(found: Discovering) -> None:
    url = found.url_of(found.legacy.bucket)
    document = '{{"html": "<img src=\\"{url}/html/{n}.png\\"> {n}", "image": "{url}/image/{n}.png"}}'
    found.make("tasks", "data jsonb", [(n, document.format(n=n, url=url)) for n in range(12)])
    found.put(*[f"{folder}/{n}.png" for folder in ("html", "image") for n in range(12)])
    (entries,) = found.find_entries()
    assert entries["path"] == "$.image"
    assert "public.tasks.data $.html: 12 sampled rows hold URLs of objects inside longer texts" in found.read_notes()
    assert tomllib.loads(found.plan_path.read_text())["objects"] == [{"prefix": "html/"}]


def test_one_place_of_a_document_with_urls_of_two_forms_is_named_apart(found: Discovering) -> None:
    hosts = ("https://forms.example.org", "")
    found.make("surveys", "data jsonb", [(n, f'[{{"url": "{hosts[n % 2]}/storage/q/{n}.jpg"}}]') for n in range(12)])
    found.put(*[f"q/{n}.jpg" for n in range(12)])
    names = [one["name"] for one in found.find_entries()]
    place = "public.surveys.data $[*].url"
    assert sorted(names) == [f"{place} /storage/", f"{place} https://forms.example.org/storage/"]


def test_a_column_with_the_buckets_name_is_told(found: Discovering) -> None:
    found.make("files", "path text", [(n, f"a/{n}.png") for n in range(12)])
    found.make("settings", "bucket text", [(1, found.legacy.bucket)])
    found.put(*[f"a/{n}.png" for n in range(12)])
    found.find_entries()
    assert "public.settings.bucket: 1 sampled row holds the name of the legacy bucket" in found.read_notes()


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
    assert "public.settings.value $: 1 sampled row holds the name of the legacy bucket" in found.read_notes()
    assert found.run("migrate", "--yes").returncode == 0
    there = (
        f"select value #>> '{{}}' from settings where value #>> '{{}}' like '{found.url_of(found.production.bucket)}/%'"
    )
    assert len(found.read_texts(there)) == 6


PARTITION = "regexp_replace(lpad(id::text, 9, '0'), '(...)(...)(...)', '\\1/\\2/\\3')"
NAMED = ("name text", "'my file ' || n || '.png'")
LIST = ("names jsonb", "jsonb_build_array('a' || n || '.png', 'b' || n || '.gif')")
COMPUTED = {
    "CarrierWave (Rails)": (*NAMED, ["'uploads/file/name/' || id || '/' || name",
                                     "'uploads/file/name/' || id || '/thumb_' || name"]),
    "CarrierWave, several files": (*LIST, ["'uploads/file/names/' || id || '/' || (names ->> 0)",
                                           "'uploads/file/names/' || id || '/' || (names ->> 1)"]),
    "Paperclip (Rails)": (*NAMED, [f"'files/names/' || {PARTITION} || '/original/' || name",
                                   f"'files/names/' || {PARTITION} || '/small/my file ' || id || '.jpg'"]),
    "media library (Laravel)": (*NAMED, ["id || '/' || name", "id || '/conversions/my file ' || id || '-thumb.jpg'"]),
    "upload_to with the id (Django)": (*NAMED, ["'media/files/' || id || '/' || name"]),
    "the id alone, in a folder of another name": ("caption text", "'c'", ["'media/store/' || id || '.jpg'"]),
    "the id alone": ("caption text", "'c'", ["id::text"]),
    "the id alone, and smaller versions": ("caption text", "'c'", ["'files/' || id || '/image'",
                                                                   "'files/' || id || '/thumb'"]),
}  # fmt: skip


@pytest.mark.by_day("CarrierWave*", "Paperclip*", "media*", "upload_to*")
@pytest.mark.parametrize("form", COMPUTED)
def test_keys_are_computed_as_frameworks_make_them_in_a_table_that_is_not_known(found: Discovering, form: str) -> None:
    columns, values, keys = COMPUTED[form]
    found.fill("files", columns, values, 101, 160)
    found.put(*found.read_texts(f"select unnest(array[{', '.join(keys)}]) from files"))
    (entries,) = found.find_entries()
    named = [entries[name] for name in ("objects", "optional") if name in entries]
    computed = " union ".join(f"select unnest(array[]::text[] || ({each})) from files" for each in named)
    assert set(found.read_texts(computed)) == set(found.legacy.listing())
    assert "60 of 60 sampled rows name existing objects" in found.read_notes()


def test_keys_are_computed_from_a_uuid(found: Discovering) -> None:
    found.execute("create table pictures (id uuid primary key, caption text)")
    found.execute("insert into pictures select md5(n::text)::uuid, 'c' from generate_series(1, 40) as n")
    found.put(*found.read_texts("select 'pictures/' || id || '.webp' from pictures"))
    (entries,) = found.find_entries()
    assert (entries["key"], entries["objects"]) == ("id", "'pictures/' || id::text || '.webp'")


def test_a_columns_objects_are_found_in_all_of_their_folders(found: Discovering) -> None:
    found.fill("files", "name text", "'f' || n || '.png'", 101, 160)
    folders = ("originals", "small", "thumbs")
    found.put(*[f"{folder}/{n}/f{n}.png" for folder in folders for n in range(101, 161)])
    (entries,) = found.find_entries()
    assert entries["objects"] == "'originals/' || id::text || '/' || name"
    assert all(f"'{folder}/'" in entries["optional"] for folder in folders[1:])


def test_objects_that_only_some_rows_have_may_be_missing(found: Discovering) -> None:
    found.fill("files", "code text", "md5(n::text)", 101, 160)
    found.put(*found.read_texts("select 'files/' || id || '.bin' from files where id % 3 > 0"))
    (entries,) = found.find_entries()
    assert {"key", "objects"} & entries.keys() == set()
    assert entries["optional"] == "'files/' || id::text || '.bin'"


def test_what_no_rule_explains_is_copied_without_rows(found: Discovering) -> None:
    """Slices, digests and the like are for a schema that is described, or for `objects` by hand."""
    found.fill("files", "code text", "md5(n::text)", 101, 160)
    found.make("notes", "path text", [(n, f"notes/{n}.txt") for n in range(9)])
    found.put(*[f"notes/{n}.txt" for n in range(9)])
    found.put(*found.read_texts("select 'd/' || left(code, 2) || '/' || code from files"))
    (entries,) = found.find_entries()
    assert entries["key"] == "path"
    assert 'prefix = "d/"' in found.plan_path.read_text()


def test_numbers_do_not_say_when_a_row_changed(found: Discovering) -> None:
    found.make("files", "path text, updated bigint", [(n, f"a/{n}", 1_700_000_000 + n) for n in range(12)])
    found.put(*[f"a/{n}" for n in range(12)])
    (entries,) = found.find_entries()
    assert "changed" not in entries
    assert "no column was found that says when a row changed" in found.read_notes()


@pytest.mark.parametrize(
    ("row", "key", "objects"),
    [
        ("audio/show+{}.m4a", "audio/show {}.m4a", "replace(file, '+', ' ')"),
        ("audio/Übung {}.m4a", "audio/U\u0308bung {}.m4a", "normalize(file, NFD)"),
    ],
)
def test_keys_that_the_bucket_spells_otherwise_are_computed(
    row: str, key: str, objects: str, found: Discovering
) -> None:
    found.execute("create table episodes (id int primary key, file text)")
    found.insert("episodes", [(number, row.format(number)) for number in range(20)])
    found.put(*[key.format(number) for number in range(20)])
    (entries,) = found.find_entries()
    assert (entries["key"], entries["objects"], entries["rows"]) == ("file", objects, "stay")
