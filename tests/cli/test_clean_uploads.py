"""`rowferry clean-uploads`: what dead workers left behind goes, and nothing else does."""

from collections.abc import Callable
from contextlib import closing

import pytest

from rowferry.errors import ObjectRejected
from rowferry.s3.client import open_object_client
from rowferry_cli.operate.left_uploads import abort, is_ours
from rowferry_cli.operate.unfinished_uploads import list_uploads
from support.entries.migration import Migration
from support.processes.cli import well
from support.s3.buckets import fresh_buckets
from support.s3.objects import ObjectSide
from support.s3.servers import running_server

ROOM = 5 * 1024 * 1024


def begin(side: ObjectSide, key: str) -> str:
    """Begin an upload, send a part, and return its id."""
    upload_id = side.client.create_multipart_upload(Bucket=side.bucket, Key=key)["UploadId"]
    side.client.upload_part(Bucket=side.bucket, Key=key, UploadId=upload_id, PartNumber=1, Body=b"p" * ROOM)
    return upload_id


@pytest.fixture
def littered(any_migration: Migration) -> Migration:
    """A migration whose workers, the application and others have started uploads and never completed them."""
    for key in ("avatar/a.mp4", "avatar/ü b.mp4", "avatar/own.mp4", "elsewhere/c.mp4"):
        begin(any_migration.production, key)
    for name in ("a", "ü b"):
        any_migration.legacy.put(f"image/{name}.mp4", b"a film")
    for key in ("avatar/d.mp4", "image/e.mp4"):
        begin(any_migration.legacy, key)
    return any_migration.write_plan()


def test_uploads_of_legacy_objects_are_aborted_and_no_others(littered: Migration) -> None:
    littered.production.put("avatar/whole.mp4", b"an object")
    done = well(littered.run("clean-uploads", "--older-than", "0s", "--yes"))
    assert "avatar/a.mp4" in done.stdout
    assert "avatar/ü b.mp4" in done.stdout
    assert "Aborted 2 uploads." in done.stdout
    assert "Skipped 1 upload to keys without a legacy object" in done.stdout
    assert "Uploads of your application to these keys look the same and are aborted too" in done.stdout
    assert sorted(littered.production.open_uploads()) == ["avatar/own.mp4", "elsewhere/c.mp4"]
    assert sorted(littered.legacy.open_uploads()) == ["avatar/d.mp4", "image/e.mp4"]
    assert littered.production.read("avatar/whole.mp4") == b"an object"
    assert "was left behind" in littered.run("clean-uploads", "--older-than", "0s").stdout


def test_nothing_is_aborted_without_a_yes(littered: Migration) -> None:
    done = littered.run("clean-uploads", "--older-than", "0s")
    assert (done.returncode, "avatar/a.mp4" in done.stdout) == (2, True)
    assert "add --yes" in done.stderr
    assert len(littered.production.open_uploads()) == 4


def test_what_may_be_under_way_is_left_alone(versitygw_migration: Migration) -> None:
    """moto tells no times of its own."""
    begin(versitygw_migration.production, "avatar/a.mp4")
    versitygw_migration.write_plan()
    assert "was left behind" in well(versitygw_migration.run("clean-uploads", "--yes")).stdout
    assert versitygw_migration.production.open_uploads() == ["avatar/a.mp4"]


RECORD = """
insert into rowferry.upload (production, key, migration_id, batch_id, attempt_id, upload_id, touched_at)
values ('somewhere', %s, 1, %s, 1, %s, now() - interval '2 days')
"""


def clean_two_recorded(migration: Migration) -> str:
    """Clean up where two uploads are recorded, and return what is said: one batch waits, the other one is in ERROR."""
    for number, name in ((1, "a.mp4"), (2, "b.mp4")):
        migration.add(number, name)
    migration.write_plan().enqueue(batch_size=1)
    begun = {key: begin(migration.production, key) for key in ("avatar/a.mp4", "avatar/b.mp4")}
    for batch, (key, upload_id) in enumerate(begun.items(), 1):
        migration.execute(RECORD, (key, batch, upload_id))
    migration.execute("update rowferry.batch_queue set status = 'ERROR' where id = 2")
    done = well(migration.run("clean-uploads", "--older-than", "0s", "--yes"))
    assert "Skipped 1 upload that workers will go on with." in done.stdout
    assert migration.production.open_uploads() == ["avatar/a.mp4"]
    return done.stdout


def test_an_upload_that_will_be_continued_is_left_alone(migration: Migration) -> None:
    clean_two_recorded(migration)
    well(migration.run("prune", "--older-than", "1d", "--yes"))
    assert [row["key"] for row in migration.execute("select key from rowferry.upload")] == ["avatar/a.mp4"]


def test_a_recorded_upload_is_aborted_whose_legacy_object_is_gone(migration: Migration) -> None:
    migration.write_plan()
    well(migration.run("init"))
    migration.execute(RECORD, ("avatar/a.mp4", 1, begin(migration.production, "avatar/a.mp4")))
    assert "Aborted 1 upload." in well(migration.run("clean-uploads", "--older-than", "0s", "--yes")).stdout
    assert migration.production.open_uploads() == []


@pytest.mark.soak
def test_minio_which_lists_uploads_by_their_whole_key_is_asked_for_those_that_are_recorded(
    make_migration: Callable[..., Migration],
) -> None:
    with running_server("minio") as server, fresh_buckets(server) as buckets:
        assert "Aborted 1 upload." in clean_two_recorded(make_migration(buckets, buckets))


def test_in_one_bucket_the_keys_that_are_legacy_are_not_ours(migration: Migration) -> None:
    migration.plan["legacy"]["bucket"] = migration.plan["production"]["bucket"]
    migration.plan["entries"][0] |= {"from": "a/b/", "to": "a/"}
    plan = migration.read_plan()
    assert is_ours("a/x", plan)
    assert not is_ours("a/b/x", plan)
    assert not is_ours("c/x", plan)
    migration.plan["legacy"]["bucket"] = "another"
    assert not is_ours("a/b/x", migration.read_plan())


def test_nothing_can_be_aborted_in_a_legacy_bucket(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(migration.legacy, "avatar/d.mp4")
    for name, value in migration.environment.items():
        monkeypatch.setenv(name, value)
    with closing(open_object_client(migration.read_plan().legacy)) as client:
        (upload,) = list_uploads(client.ask, "legacy")
        with pytest.raises(ObjectRejected, match="legacy"):
            abort(client, upload)
    assert migration.legacy.open_uploads() == ["avatar/d.mp4"]
