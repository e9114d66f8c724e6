"""`rowferry plan --discover` believes what a listing shows, and says what it has not looked at, and why."""

import json

import psycopg
import pytest

from rowferry.plan.sides import LegacySide
from rowferry_cli.discover.evidence import bucket
from rowferry_cli.discover.evidence.readings import Reading, suggest_readings
from support.entries.discovering import Discovering, on_moto
from support.s3.request_log import logged

NUMBERS = range(12)


def fill(found: Discovering, begins: str, folder: str = "") -> None:
    """Make rows whose texts begin so, and their objects in a folder."""
    found.make("files", "path text", [(n, f"{begins}pics/{n}.png") for n in NUMBERS])
    found.put(*[f"{folder}pics/{n}.png" for n in NUMBERS])


@pytest.mark.parametrize("begins", ["s3:", "app:", "app://", "app:///", "kestra:///", "x-store:/"])
@pytest.mark.parametrize("folder", ["", "media/"])
def test_keys_behind_a_scheme_of_any_form_are_found(found: Discovering, begins: str, folder: str) -> None:
    fill(found, begins, folder)
    (entries,) = found.find_entries()
    cut = len(begins) + (len("pics/") if entries["from"].endswith("pics/") else 0)
    assert entries["from"] == f"{begins}pics/"[:cut]
    assert entries["legacy_object"] == f"{folder}{'pics/'[: cut - len(begins)]}"


def test_urls_of_keys_with_blanks_are_found_as_a_whole(found: Discovering) -> None:
    begins = f"s3://{found.legacy.bucket}/"
    found.make("files", "path text", [(n, f"{begins}pics/my file {n}.png") for n in NUMBERS])
    found.put(*[f"pics/my file {n}.png" for n in NUMBERS])
    (entries,) = found.find_entries()
    assert (entries["from"], "within" in entries) == (begins, False)


def test_keys_behind_any_words_are_found(found: Discovering) -> None:
    fill(found, "/static/v1/")
    (entries,) = found.find_entries()
    assert entries["from"].startswith("/static/v1/")


def test_keys_at_the_end_of_texts_are_found_at_any_depth_of_a_document(found: Discovering) -> None:
    other = [f"word {n} of many" for n in range(30)]
    documents = [json.dumps([*other, {"a": {"b": {"c": [{"d": {"e": f"s3:runs/{n}/out.bin"}}]}}}]) for n in NUMBERS]
    found.make("runs", "data text", list(zip(NUMBERS, documents, strict=True)))
    found.put(*[f"runs/{n}/out.bin" for n in NUMBERS])
    (entries,) = found.find_entries()
    assert entries["path"] == "$[*].a.b.c[*].d.e"
    assert entries["from"].startswith("s3:")


def test_texts_among_many_others_in_a_list_are_found(found: Discovering) -> None:
    other = [f"value/{n}" for n in range(30)]
    found.make("runs", "data jsonb", [(n, json.dumps([*other, f"s3:runs/{n}/out.bin"])) for n in NUMBERS])
    found.put(*[f"runs/{n}/out.bin" for n in NUMBERS])
    (entries,) = found.find_entries()
    assert (entries["path"], entries["from"][:3]) == ("$[*]", "s3:")


@pytest.mark.parametrize("listed", [0, 1000])
def test_a_key_that_no_listing_has_is_not_believed(
    found: Discovering, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    """A file gateway answers for `media//a` with `media/a`."""
    monkeypatch.setattr(bucket, "MAX_LISTED", listed)
    fill(found, "app:///", "media/")
    head = b'HTTP/1.1 200 OK\r\nETag: "d41d8cd98f00b204e9800998ecf8427e"\r\nContent-Length: 1\r\n\r\n'
    with logged(found.legacy.endpoint_url) as log, log.answering(lambda seen: "//" in seen.key, head):
        (entries,) = found.find_entries(legacy=f"{log.endpoint_url}/{found.legacy.bucket}")
    assert (entries["from"], entries["legacy_object"]) in {("app:///", "media/"), ("app:///pics/", "media/pics/")}


@on_moto
@pytest.mark.parametrize(("listed", "most"), [(1000, 100), (0, 1000)])
def test_a_bucket_costs_few_requests(
    found: Discovering, monkeypatch: pytest.MonkeyPatch, listed: int, most: int
) -> None:
    monkeypatch.setattr(bucket, "MAX_LISTED", listed)
    for number in range(20):
        row = [(n, f"x/{number}/{n}.png", f"/y/{n}.jpg", '{"z": "q/w.gif"}') for n in NUMBERS]
        found.make(f"t{number}", "a text, b text, c jsonb", row)
    found.put(*[f"x/1/{n}.png" for n in NUMBERS], *[f"folder{n}/{m}/x.bin" for n in range(30) for m in range(3)])
    with logged(found.legacy.endpoint_url) as log:
        assert found.find_entries(legacy=f"{log.endpoint_url}/{found.legacy.bucket}")
    assert len(log.seen) < most


def test_an_object_that_two_columns_name_gets_one_form(found: Discovering) -> None:
    found.execute("create table exports (id bigint primary key, filename text, url text)")
    url = found.url_of(found.legacy.bucket)
    found.insert("exports", [(n, f"exports/{n}.zip", f"{url}/exports/{n}.zip") for n in NUMBERS])
    found.put(*[f"exports/{n}.zip" for n in NUMBERS])
    (entries,) = found.find_entries()
    assert (entries["key"], "rows" in entries) == ("url", False)
    assert "filename: its objects are those of url" in found.read_notes()


def test_a_rule_with_the_digest_of_one_owner_is_refused(found: Discovering) -> None:
    found.make("packages", "file text", [(n, f"{n}.jar") for n in NUMBERS])
    digests = ["6706" + "ab12" * 15, "3094" + "cd34" * 15]
    found.put(*[f"packages/{digests[n % 2]}/{n}/{n}.jar" for n in NUMBERS])
    found.discover()
    text = found.plan_path.read_text()
    assert not any(digest in text for digest in digests)
    assert '[[objects]]\nprefix = "packages/"' in text


def test_what_stays_behind_is_named_however_little_it_is(found: Discovering) -> None:
    found.make("files", "path text", [(n, f"pics/{n}.png") for n in range(40)])
    found.put(*[f"pics/{n}.png" for n in range(41)])
    found.find_entries()
    left = "No row names some objects, as those of deleted rows are; they stay behind: pics/: 1 of 41"
    assert left in found.read_notes()


def test_near_misses_are_said_where_nothing_is_found(found: Discovering) -> None:
    found.make("files", "path text", [(n, f"pics/{n}.png") for n in range(100)])
    found.put("pics/7.png")
    done = found.discover()
    assert "Near misses: public.files.path: only 1 of 100 sampled rows name existing objects" in (
        done.stderr + done.stdout
    )


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("https://cdn.example/a/1.png", [False]),
        ("https://cdn.example/a/1.png?v=2", [True, False]),
        ("https://cdn.example/a/1%20b.png", [True, False]),
        ("a/1.png?v=2", [False]),
        ("a/1%20b.png", [True, False]),
    ],
)
def test_a_text_is_decoded_where_it_may_be_encoded(text: str, encodings: list[bool]) -> None:
    base = "https://cdn.example/" if text.startswith("https") else ""
    found = suggest_readings([text], LegacySide(bucket="media"), [])
    assert found == [Reading(base, "", is_encoded) for is_encoded in encodings]


@pytest.fixture
def photos(found: Discovering) -> Discovering:
    """Ten rows that name objects."""
    found.make("photos", "path text", [(n, f"image/{n}.png") for n in range(10)])
    found.put(*[f"image/{n}.png" for n in range(10)])
    return found


def test_a_locked_table_is_told(photos: Discovering) -> None:
    photos.execute("create table files (id bigint primary key, path text)")
    with psycopg.connect(photos.dsn) as holding:
        holding.execute("lock table public.files in access exclusive mode")
        assert photos.discover(ROWFERRY_LOCK_TIMEOUT="1s").returncode == 0
    assert "Not looked at: public.files.path, since it took too long or the table was locked" in photos.read_notes()


def test_more_folders_than_are_listed_are_told(photos: Discovering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "MAX_LISTED", 0)
    photos.put(*[f"more/part{n}/inner{m}/x.bin" for n in range(20) for m in range(10)])
    assert photos.discover().returncode == 0
    assert "Not looked at: folders of the bucket beyond the first 150 that were listed" in photos.read_notes()


@on_moto
def test_nothing_is_told_where_all_was_looked_at(photos: Discovering) -> None:
    assert photos.discover().returncode == 0
    assert "Not looked at" not in photos.read_notes()
