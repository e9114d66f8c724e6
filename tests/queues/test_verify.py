"""`rowferry verify`: every production entry's object is held against its legacy object, and repaired where asked to."""

from datetime import timedelta
from typing import Any

import pytest

from rowferry.errors import ServerFault
from rowferry_queues.verify import perform as examining
from support.entries.migration import Migration
from support.processes.cli import refused, well
from support.processes.processes import wait_for
from support.queue.queue_runs import outcomes, verify
from support.running.afterwards import act_after

MIB = 1024 * 1024


def reasons(migration: Migration) -> dict[str, str]:
    return {failure["entry_id"]: failure["reason"] for failure in migration.failures()}


def put_newer(migration: Migration, side: str, key: str, body: bytes, than: Any) -> None:
    """Write an object until it is later than another, whatever is known of the clocks: S3 tells whole seconds."""
    bucket = getattr(migration, side)

    def write() -> bool:
        bucket.put(key, body)
        return bucket.head(key)["LastModified"] >= than + timedelta(seconds=4)

    wait_for(write)


def written_at(migration: Migration, side: str, key: str) -> Any:
    return getattr(migration, side).head(key)["LastModified"]


def test_a_difference_is_found_and_left_alone(any_migration: Migration) -> None:
    any_migration.fill(4).migrate()
    any_migration.production.put("avatar/u2/me.png", b"BODY of 2")
    any_migration.production.delete("avatar/u3/me.png")
    before = any_migration.production.listing()
    (batch,) = verify(any_migration)
    assert batch["status"] == "ERROR"
    assert outcomes([batch]) == {"kept": 2, "missing": 1, "conflict": 1}
    assert reasons(any_migration)["3"] == "NoProductionObject"
    assert any_migration.production.listing() == before
    assert set(any_migration.rows().values()) == {f"avatar/u{n}/me.png" for n in range(1, 5)}
    any_migration.check_balance()


def test_an_object_that_was_never_legacy_counts_as_kept(migration: Migration) -> None:
    migration.add_row(1, "avatar/new.png", b"new")
    migration.production.put("avatar/new.png", b"new")
    migration.add_row(2, "avatar/lost.png")
    (batch,) = verify(migration)
    assert outcomes([batch]) == {"kept": 1, "missing": 1}
    assert "no legacy object either" in migration.failures()[0]["error"]


def test_legacy_rows_are_not_the_business_of_a_verification(migration: Migration) -> None:
    migration.fill(3)
    assert verify(migration) == []


def test_what_the_application_wrote_after_the_copy_is_copied_again(any_migration: Migration) -> None:
    """The dirty copy while everything is live, then a short delta."""
    any_migration.fill(3)
    any_migration.add(9, "tagged.png", Tagging="kind=cat", ContentType="image/png")
    any_migration.migrate()
    copied_at = written_at(any_migration, "production", "avatar/u2/me.png")
    put_newer(any_migration, "legacy", "image/u2/me.png", b"written later", copied_at)
    any_migration.bodies["2"] = b"written later"
    any_migration.production.delete("avatar/tagged.png")
    legacy = any_migration.legacy.listing()
    (batch,) = verify(any_migration, repair="older")
    assert (batch["status"], outcomes([batch])) == ("DONE", {"migrated": 2, "kept": 2})
    assert any_migration.production.tags("avatar/tagged.png") == {"kind": "cat"}
    assert any_migration.legacy.listing() == legacy
    any_migration.audit()
    assert outcomes(verify(any_migration)[1:]) == {"kept": 4}


def test_what_was_written_to_the_production_key_last_is_not_overwritten(any_migration: Migration) -> None:
    """It may be the application's own work."""
    any_migration.fill(2).migrate()
    put_newer(
        any_migration,
        "production",
        "avatar/u1/me.png",
        b"an upload",
        written_at(any_migration, "legacy", "image/u1/me.png"),
    )
    (batch,) = verify(any_migration, repair="older")
    assert outcomes([batch]) == {"kept": 1, "conflict": 1}
    assert reasons(any_migration) == {"1": "ProductionIsNewer"}
    assert any_migration.production.read("avatar/u1/me.png") == b"an upload"
    (batch,) = verify(any_migration, repair="all")
    assert (batch["status"], outcomes([batch])) == ("DONE", {"kept": 1, "migrated": 1})
    any_migration.audit()


def test_a_second_verification_looks_again_at_what_the_first_found(migration: Migration) -> None:
    """Its batches in ERROR are not left lying, and are not counted twice."""
    migration.fill(6).migrate()
    migration.production.delete("avatar/u5/me.png")
    assert [outcomes([batch]) for batch in verify(migration, batch_size=3)] == [{"kept": 3}, {"kept": 2, "missing": 1}]
    first, second, third = verify(migration, batch_size=3, repair="older")
    assert outcomes([second]) == {"kept": 2, "migrated": 1}
    assert [batch["status"] for batch in (first, second, third)] == ["DONE"] * 3
    assert sorted(batch["entry_count"] for batch in (first, second, third)) == [3, 3, 3]
    migration.check_balance()


def test_an_attempt_that_is_repeated_counts_each_entry_once(
    versitygw_migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration = versitygw_migration
    migration.fill(5).migrate()
    migration.production.delete("avatar/u2/me.png")
    original = examining.are_same

    async def damaged_once(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(examining, "are_same", original)
        raise ServerFault("InternalError", "as told")

    monkeypatch.setattr(examining, "are_same", damaged_once)
    verify(migration, repair="older")
    batch = migration.batches()[-1]
    assert (batch["status"], outcomes([batch])) == ("INIT", {"migrated": 1, "kept": 3, "failed": 1})
    migration.work_again("verify")
    batch = migration.batches()[-1]
    assert (batch["status"], outcomes([batch])) == ("DONE", {"migrated": 1, "kept": 4})
    assert batch["entry_count"] == 5


def test_the_bytes_are_read_only_where_asked_to(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    """ETags that are digests say enough, unless --deep."""
    from rowferry_worker.objects import compare

    migration.fill(2)
    migration.add_row(3, "avatar/new.png")
    migration.production.put("avatar/new.png", b"new")
    migration.migrate()
    read: list[str] = []
    original = compare.get_object

    def noting(side: Any, key: str, **more: Any) -> Any:
        read.append(f"{side} {key}")
        return original(side, key, **more)

    monkeypatch.setattr(compare, "get_object", noting)
    verify(migration)
    assert read == []
    (_, batch) = verify(migration, deep=True)
    assert outcomes([batch]) == {"kept": 3}
    assert sorted(read) == [
        "legacy image/u1/me.png",
        "legacy image/u2/me.png",
        "production avatar/new.png",
        "production avatar/u1/me.png",
        "production avatar/u2/me.png",
    ]


def test_objects_whose_etags_mean_nothing_are_compared_all_the_same(any_migration: Migration) -> None:
    """A large object has one ETag where it came in parts and another where it came in one piece."""
    body = b"0123456789abcdef" * (6 * MIB // 16)
    for row_id, key in enumerate(("same", "other"), 1):
        any_migration.add(row_id, key, body)
        any_migration.execute("update public.avatars set path = %s where id = %s", (f"avatar/{key}", row_id))
        client = any_migration.production.client
        there = {"Bucket": any_migration.production.bucket, "Key": f"avatar/{key}"}
        upload = {**there, "UploadId": client.create_multipart_upload(**there)["UploadId"]}
        sent = body if key == "same" else body[:-1] + b"F"
        parts = []
        for number, part in enumerate((sent[: 5 * MIB], sent[5 * MIB :]), 1):
            etag = client.upload_part(**upload, PartNumber=number, Body=part)["ETag"]
            parts.append({"PartNumber": number, "ETag": etag})
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    (batch,) = verify(any_migration)
    assert outcomes([batch]) == {"kept": 1, "conflict": 1}
    assert list(reasons(any_migration)) == ["2"]


def test_rows_that_share_an_object_are_repaired_together(migration: Migration) -> None:
    migration.add(1, "shared.png")
    for row_id in (2, 3):
        migration.add_row(row_id, "image/shared.png", migration.bodies["1"])
    migration.migrate()
    migration.production.delete("avatar/shared.png")
    (batch,) = verify(migration, repair="older")
    assert outcomes([batch]) == {"migrated": 1, "kept": 2}
    migration.audit()


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        ("delete from public.avatars where id = 2", "deleted"),
        ("update public.avatars set path = 'avatar/u1/me.png' where id = 2", "changed"),
    ],
)
def test_a_row_that_goes_elsewhere_meanwhile_takes_its_finding_with_it(
    statement: str, outcome: str, migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.fill(2).migrate()
    migration.production.delete("avatar/u2/me.png")
    act_after(monkeypatch, examining, "verify_objects", lambda: migration.execute(statement))
    (batch,) = verify(migration)
    assert (batch["status"], outcomes([batch])) == ("DONE", {"kept": 1, outcome: 1})


def test_the_command_tells_by_its_exit_status(migrated: Migration) -> None:
    done = well(migrated.run_here("verify", "-b", "2"))
    assert "kept                 5  equal" in done.stdout
    assert "entries              5  the sum" in done.stdout
    migrated.production.delete("avatar/u3/me.png")
    done = migrated.run_here("verify", "--processes", "1")
    assert done.returncode == 1
    assert "missing              1  no production object" in done.stdout
    done = well(migrated.run_here("verify", "--repair", "--processes", "1", "--yes"))
    assert "migrated             1  missing or different, copied again" in done.stdout
    assert "entries              5  the sum" in done.stdout
    migrated.audit()


def test_nothing_is_repaired_without_a_yes(migrated: Migration) -> None:
    migrated.production.delete("avatar/u3/me.png")
    assert "There is no terminal to ask on: add --yes" in refused(migrated.run_here("verify", "--repair"))
    assert migrated.production.read("avatar/u3/me.png") is None
    assert migrated.run_here("verify", "--overwrite").returncode == 2


def test_a_range_of_ids_can_be_verified_by_workers_elsewhere(migrated: Migration) -> None:
    done = migrated.run_here("verify", "--table", "public.avatars", "--first", "2", "--last", "4", "--processes", "0")
    assert (done.returncode, "Enqueued 3 entries in 1 batch." in done.stdout) == (0, True)
    assert migrated.ranges()[1:] == [("2", "4")]
    done = migrated.run_here("verify", "--table", "public.nothing", "--processes", "0")
    assert (done.returncode, "The plan has no table public.nothing" in done.stderr) == (2, True)
