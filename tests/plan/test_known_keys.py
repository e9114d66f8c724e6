"""The SQL of known schemas yields the keys that the applications compute; what the corpus does not have is here."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import pytest

from support.entries.discovering import Discovering

ACCOUNTS = """
create table accounts (
    id bigint primary key, avatar_file_name text, header_file_name text, domain text, updated_at timestamp
);
create table media_attachments (
    id bigint primary key, file_file_name text, remote_url text, type integer, updated_at timestamp
);
"""
GITLAB = """
create table uploads (id bigint primary key, path text, uploader text, store integer, model_type text);
create table lfs_objects (id bigint primary key, oid text, file_store integer);
"""
PROJECT = sha256(b"7").hexdigest()


@dataclass(frozen=True, slots=True)
class Case:
    """A table of an application, one row of it, and the keys of the row's objects."""

    schema: str
    tables: str
    key: str
    required: str
    optional: tuple[str, ...] = ()


CASES: Mapping[str, Case] = {
    "custom_emojis": Case(
        "mastodon",
        ACCOUNTS + "create table custom_emojis (id bigint primary key, image_file_name text, domain text, "
        "image_storage_schema_version integer, updated_at timestamp);"
        "insert into custom_emojis values (12345, 'smile.gif', 'far.example', 1, now())",
        "image_file_name",
        "cache/custom_emojis/images/000/012/345/original/smile.gif",
        ("cache/custom_emojis/images/000/012/345/static/smile.png",),
    ),
    "preview_cards": Case(
        "mastodon",
        ACCOUNTS + "create table preview_cards (id bigint primary key, image_file_name text, "
        "image_storage_schema_version integer, updated_at timestamp);"
        "insert into preview_cards values (109876543210987654, 'a.jpg', 1, now())",
        "image_file_name",
        "cache/preview_cards/images/109/876/543/210/987/654/original/a.jpg",
    ),
    "site_uploads": Case(
        "mastodon",
        ACCOUNTS + "create table site_uploads (id bigint primary key, file_file_name text, updated_at timestamp, "
        "var text); insert into site_uploads values (3, 'thumb.jpeg', now(), 'app_icon')",
        "file_file_name",
        "site_uploads/files/000/000/003/original/thumb.jpeg",
        (
            *("site_uploads/files/000/000/003/@1x/thumb.png", "site_uploads/files/000/000/003/@2x/thumb.png"),
            *(f"site_uploads/files/000/000/003/{size}/thumb.jpeg" for size in (16, 180, 1024)),
        ),
    ),
    "backups": Case(
        "mastodon",
        ACCOUNTS + "create table backups (id bigint primary key, dump_file_name text, updated_at timestamp);"
        "insert into backups values (1234567890, 'archive.zip', now())",
        "dump_file_name",
        "backups/dumps/001/234/567/890/original/archive.zip",
    ),
    "ci_job_artifacts": Case(
        "gitlab",
        GITLAB + "create table ci_job_artifacts (id bigint primary key, project_id integer, job_id bigint, file text, "
        "file_store integer, file_location integer, created_at timestamptz, updated_at timestamptz);"
        "insert into ci_job_artifacts values (31, 7, 20, 'job.log', 2, 2, '2026-02-03 12:00+00', now())",
        "file",
        f"artifacts/{PROJECT[:2]}/{PROJECT[2:4]}/{PROJECT}/2026_02_03/20/31/job.log",
    ),
    "media": Case(
        "laravel",
        "create table migrations (id serial primary key, migration text, batch integer);"
        "create table media (id bigint primary key, file_name text, disk text, conversions_disk text, "
        "generated_conversions json, responsive_images json);"
        "insert into media values (5, 'cat.heic', 's3', 's3', '{\"thumb\": true, \"big\": false}', "
        '\'{"media_library_original": {"urls": ["cat___640_480.jpg"]}}\')',
        "file_name",
        "5/cat.heic",
        ("5/conversions/cat-thumb.jpg", "5/conversions/cat-thumb.heic", "5/responsive-images/cat___640_480.jpg"),
    ),
}


@pytest.mark.parametrize("table", CASES)
def test_the_keys_of_a_known_schema_are_those_of_the_application(table: str, found: Discovering) -> None:
    case = CASES[table]
    found.execute(case.tables)
    found.put(case.required, *case.optional)
    (entries,) = found.find_entries("--for", case.schema)
    assert (entries["table"], entries["key"]) == (f"public.{table}", case.key)
    assert found.evaluate(table, entries["objects"]) == [case.required]
    assert set(case.optional) <= set(found.evaluate(table, entries.get("optional", "null::text")))
    if case.schema == "laravel":
        assert entries["moved"] == {"disk": ["s3", "production"], "conversions_disk": ["s3", "production"]}
