"""`rowferry plan --discover` finds what few texts of a column name, and reads texts of every scheme."""

import psycopg
import pytest

from rowferry_cli.discover.evidence.written_sql import RESERVED, quote_name
from support.entries.discovering import Discovering, Plan, on_moto

HOSTS = 300
ENDPOINT = "{side.endpoint_url}/{side.bucket}/files/"


def fill_remote(found: Discovering, rows: int, local: str) -> None:
    """Make rows of which one in 83, all of them the newest, names an object: the others are remote."""
    found.execute("create table drive_file (id bigint primary key, url text, data jsonb)")
    found.execute(
        f"insert into drive_file select n, url, jsonb_build_object('objects', jsonb_build_array(url)) "
        f"from (select n, case when n > {rows} * 0.988 then '{local}' || n || '.png' "
        f"else 'https://host' || n % {HOSTS} || '.example.com/media/' || n || '.png' end as url "
        f"from generate_series(1, {rows}) as n) as made"
    )
    found.put(*[f"files/{n}.png" for n in range(int(rows * 0.988), rows + 1)])


@pytest.mark.parametrize(
    "base", ["https://s3.example.net/{side.bucket}/files/", "https://{side.bucket}.s3.example.net/files/", ENDPOINT]
)
def test_urls_of_the_bucket_are_found_among_those_of_many_hosts(found: Discovering, base: str) -> None:
    fill_remote(found, 6000, base.format(side=found.legacy))
    entries = found.find_entries()
    assert [(one["key"], one.get("path")) for one in entries] == [("url", None), ("data", "$.objects[*]")]
    assert all(found.legacy.bucket in one["from"] and "rows" not in one for one in entries)


def test_rare_urls_are_found_among_texts_that_are_no_keys(found: Discovering) -> None:
    found.fill("posts", "cover text", "'none'", 1, 900)
    url = found.url_of(found.legacy.bucket)
    found.insert("posts", [(n, f"{url}/covers/{n}.png") for n in range(1000, 1010)])
    found.put(*[f"covers/{n}.png" for n in range(1000, 1010)])
    assert [one["key"] for one in found.find_entries()] == ["cover"]
    assert "10 of 10 sampled rows" in found.plan_path.read_text()


def test_rows_are_counted_and_not_their_texts(found: Discovering) -> None:
    """Also where a row is in the sample, and among the rare ones that name the bucket."""
    url = found.url_of(found.legacy.bucket)
    places = ", ".join(f"'{url}/a/' || n || '-{m}.png'" for m in range(3))
    found.fill("posts", "data jsonb", f"jsonb_build_array({places})", 1, 40)
    found.put(*[f"a/{n}-{m}.png" for n in range(1, 41) for m in range(3)])
    found.find_entries("--sample", "40")
    assert "40 of 40 sampled rows name existing objects" in found.plan_path.read_text()


@pytest.mark.parametrize("folder", ["", "store/"])
def test_a_scheme_that_names_a_storage_has_no_host(found: Discovering, folder: str) -> None:
    names = [f"{n:02x}/{n + 1:02x}/{n}.pdf" for n in range(30)]
    found.make("attachments", "store_fname text", [(n, f"s3old://{name}") for n, name in enumerate(names)])
    found.put(*[f"{folder}{name}" for name in names])
    (entries,) = found.find_entries()
    assert (entries["from"], entries["to"], entries["legacy_object"]) == ("s3old://", "s3old://", folder)
    assert "30 of 30 sampled rows" in found.plan_path.read_text()
    assert 'to = "s3new://"' not in entries.values()


def test_a_column_that_names_other_columns_objects_by_chance_is_told(found: Discovering) -> None:
    """Half of the file names are keys as well, since some objects stand in no folder."""
    found.execute("create table attachments (id bigint primary key, store_fname text, fs_filename text)")
    for n in range(30):
        key = f"{n}.pdf" if n % 2 else f"ab/{n}.pdf"
        found.insert("attachments", [(n, f"s3old://{key}", f"{n}.pdf")])
        found.put(key)
    assert [one["key"] for one in found.find_entries()] == ["store_fname"]
    assert "fs_filename: its objects are those of store_fname" in found.read_notes()


def make_media(found: Discovering) -> None:
    found.make("media", "bucket_name text, path text", [(n, found.legacy.bucket, f"media/{n}.png") for n in range(20)])
    found.put(*[f"media/{n}.png" for n in range(20)])


@on_moto
def test_a_column_that_holds_the_buckets_name_tells_where_objects_are(found: Discovering) -> None:
    make_media(found)
    (entries,) = found.find_entries()
    assert entries["moved"] == {"bucket_name": [found.legacy.bucket, "new-media"]}
    assert "rows" not in entries


def test_two_columns_of_keys_cannot_share_the_buckets_name(found: Discovering) -> None:
    make_media(found)
    found.execute("alter table media add thumb text")
    found.execute("update media set thumb = 'thumbs/' || id || '.png'")
    found.put(*[f"thumbs/{n}.png" for n in range(20)])
    entries: list[Plan] = found.find_entries()
    assert [one["rows"] for one in entries] == ["stay", "stay"]
    assert "bucket_name holds the name of the legacy bucket" in found.read_notes()


@pytest.mark.parametrize("name", ["backend", "fileBackend", "disk", "filename_disk_", "storage_id"])
def test_columns_that_may_tell_are_shown_however_they_are_named(found: Discovering, name: str) -> None:
    found.fill("files", f"path text, \"{name}\" text default 's3'", "'a/' || n || '.png'", 1, 20)
    found.put(*[f"a/{n}.png" for n in range(1, 21)])
    found.find_entries()
    text = found.plan_path.read_text()
    shown = f'moved = {{ {name} = ["s3", "…"] }}'
    assert (shown in text) == (name != "filename_disk_")


def test_presigned_urls_are_not_rewritten(found: Discovering) -> None:
    url = found.url_of(found.legacy.bucket)
    signed = "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0123abcd"
    found.make("traces", "url text", [(n, f"{url}/t/{n}.png{signed if n % 2 else ''}") for n in range(20)])
    found.put(*[f"t/{n}.png" for n in range(20)])
    (entries,) = found.find_entries()
    assert entries["where"] == "url not like '%Signature=%'"
    assert "presigned" in found.plan_path.read_text()
    assert "10 of 10 sampled rows" in found.plan_path.read_text()


def test_rows_are_counted_where_they_name_several_objects(found: Discovering) -> None:
    document = '{"url": "a/%d.jpg", "sizes": {"s": {"url": "s/%d.jpg"}, "l": {"url": "l/%d.jpg"}}, "all": ["x/%d"]}'
    found.make("files", "data jsonb", [(n, document % (n, n, n, n)) for n in range(35)])
    found.put(*[f"{folder}/{n}.jpg" for folder in "asl" for n in range(35)])
    assert {(one["path"], one["sampled"], one["existing"]) for one in found.find_json()["entries"]} == {
        ("$.url", 35, 35),
        ("$.sizes.*.url", 35, 35),
    }


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ('"updatedAt"', "timestamptz"),
        ("modified_on", "timestamp"),
        ("updateat", "timestamp"),
        ("write_date", "timestamp"),
        ("date_modified", "date"),
        ('"lastModifiedTime"', "timestamptz"),
    ],
)
def test_the_time_of_a_change_is_found_by_any_name(found: Discovering, column: str, kind: str) -> None:
    found.fill("files", f"path text, updated boolean, {column} {kind}", "'a/' || n || '.png'", 1, 20)
    found.put(*[f"a/{n}.png" for n in range(1, 21)])
    (entries,) = found.find_entries()
    assert entries["changed"] == column.strip('"')


def test_names_that_sql_reserves_are_quoted(database: str) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute("select word from pg_get_keywords() where catcode in ('R', 'T')")
        reserved = {word for (word,) in found}
    assert reserved - RESERVED <= {"authorization", "collation"}
    assert (quote_name("user"), quote_name("Contract (PDF)"), quote_name("key")) == (
        '"user"',
        '"Contract (PDF)"',
        "key",
    )
