"""The queue `parts`: the parts of a large object are batches that all workers share; then the object is completed."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import pytest

from support.entries.entry_table import FROM, TO
from support.entries.parts_site import (
    BODY,
    NAME,
    PARTS,
    REAL_PART_BYTES,
    REAL_PARTS,
    MakeMigration,
    Site,
    begins,
    go_on,
    is_completion,
    kill_when,
    real_body,
    sends_part,
    site_on,
    site_on_fake,
)
from support.processes.processes import wait_for
from support.queue.queue_runs import outcomes
from support.s3.buckets import Buckets
from support.s3.deviations import Deviations
from support.s3.request_log import LoggedRequest

ALL = {*range(1, PARTS + 1)}


@pytest.fixture
def site(make_migration: MakeMigration) -> Iterator[Site]:
    with site_on_fake(make_migration) as site:
        yield site


@pytest.fixture(params=["server", "stream"])
def both(request: pytest.FixtureRequest, make_migration: MakeMigration) -> Iterator[Site]:
    """A site where the server copies the parts, and one where they are streamed."""
    with site_on_fake(make_migration, transfer=request.param) as site:
        yield site


def test_a_large_object_is_copied_by_parts_and_its_row_follows(make_migration: MakeMigration, buckets: Buckets) -> None:
    """On moto and versitygw, in parts of 5 MiB; a smaller object is left to the queue that follows."""
    with site_on(make_migration, buckets) as site:
        site.migration.add(1, NAME, real_body(), ContentType="video/mp4", Metadata={"by": "me"})
        site.migration.add(2, "small.png", b"small")
        site.enqueue()
        site.work()
        assert site.sent() == Counter(range(1, REAL_PARTS + 1))
        assert site.begun() == 1
        site.check_moved(real_body())
        found = site.migration.production.head(TO + NAME)
        assert (found["ContentType"], found["Metadata"]) == ("video/mp4", {"by": "me"})


@pytest.mark.parametrize(("part_bytes", "parts"), [(REAL_PART_BYTES, REAL_PARTS), (2 * REAL_PART_BYTES, 2), (None, 1)])
def test_a_server_copies_parts_as_large_as_the_plan_says(
    make_migration: MakeMigration, moto_buckets: Buckets, part_bytes: int | None, parts: int
) -> None:
    settings = {} if part_bytes is None else {"part_bytes": part_bytes}
    with site_on(make_migration, moto_buckets, transfer="server", **settings) as site:
        site.migration.add(1, NAME, real_body())
        site.enqueue()
        site.work()
        assert (site.sent(), site.copied()) == (Counter(), Counter(range(1, parts + 1)))
        site.check_arrived(real_body())


def test_entries_and_parts_are_counted_each_by_their_own_batches(both: Site) -> None:
    both.migration.add(1, NAME, BODY)
    both.migration.add(2, "small.png", b"small")
    both.enqueue()
    both.work()
    both.check_arrived()
    assert outcomes(both.object_batches()) == {"migrated": 1, "kept": 1}
    assert outcomes(both.part_batches()) == {"migrated": PARTS}
    assert [batch["entry_count"] for batch in both.part_batches()] == [4, 4, 4]
    assert sum(batch["bytes"] for batch in both.part_batches()) == len(BODY)
    assert sum(batch["bytes"] for batch in both.object_batches()) == 0
    shown = both.migration.execute("select label, entries from rowferry.table_progress where queue_name = 'parts'")
    label = "public.avatars.path"
    assert {row["label"]: row["entries"] for row in shown} == {label: 2, f"parts of {label}": PARTS}


def test_the_queue_that_follows_reads_neither_of_two_large_objects(site: Site) -> None:
    """Their ETags differ, one being of parts; the copy is remembered."""
    site.given()
    site.migration.work("parts")
    site.log.seen.clear()
    site.migration.work("migrate")
    assert not [seen for seen in site.log.seen if seen.writes or "range" in seen.headers]
    moved = site.migration.execute("select migrated, kept from rowferry.batch_queue where queue_name = 'migrate'")
    assert {(row["migrated"], row["kept"]) for row in moved} == {(0, 1)}
    site.migration.audit()


def test_two_processes_share_the_parts_of_one_object(site: Site) -> None:
    site.given()
    arguments = ("--queue=parts", "--queue=migrate", "--processes=1", "--max-batches=1")
    with site.log.holding(sends_part(1, 5, 9)) as held, site.migration.workers(2, *arguments):
        wait_for(lambda: len(held) == 2)
        claimed = site.migration.execute("select distinct worker_id from rowferry.claimed_batches")
        assert len(claimed) == 2
    go_on(site)
    site.check_moved()


@pytest.mark.parametrize("both", [pytest.param("server", marks=pytest.mark.soak), "stream"], indirect=True)
def test_a_killed_worker_costs_the_parts_that_were_under_way(both: Site) -> None:
    both.given()
    kill_when(both, sends_part(6, 12), lambda: both.recorded() == ALL - {6, 12})
    go_on(both)
    again = (both.sent() + both.copied()) - Counter(ALL)
    assert set(again) <= {6, 12}
    assert both.begun() == 1
    both.check_moved()


@pytest.mark.parametrize("where", [pytest.param("request", marks=pytest.mark.soak), "answer"])
@pytest.mark.parametrize("step", ["begin", "complete"])
def test_a_worker_killed_at_either_end_of_an_upload_costs_no_part(
    site: Site, step: str, where: Literal["request", "answer"]
) -> None:
    site.given()
    kill_when(site, begins if step == "begin" else is_completion, lambda: True, where)
    go_on(site)
    assert site.sent() == Counter(ALL)
    assert site.begun() == (2 if step == "begin" else 1)
    assert site.migration.production.read(TO + NAME) == BODY
    assert site.migration.execute("select * from rowferry.upload") == []
    assert outcomes(site.object_batches()) == {"migrated": 1}, "the completed object is not known as ours"
    site.migration.audit()


def test_a_batch_of_parts_is_halved_and_no_part_is_lost(site: Site) -> None:
    site.given()
    site.take_turns()
    site.migration.execute(
        """
        insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id)
        select id, 0, number, 'dead' from rowferry.batch_queue, generate_series(1, 2) as number
        where payload ? 'upload' and payload -> 'items' -> 0 ->> 'id' = '1'
        """
    )
    site.work()
    halves = [batch for batch in site.part_batches() if batch["entry_count"] == 2]
    assert sorted(item["id"] for batch in halves for item in batch["payload"]["items"]) == ["1", "2", "3", "4"]
    assert site.sent() == Counter(ALL)
    site.check_arrived()


def test_the_time_budget_leaves_parts_to_another_batch(site: Site) -> None:
    """No batch starts a part past its deadline: what it had started by then is all that it has sent."""
    site.migration.add(1, NAME, BODY)
    site.migration.plan["queue"]["parts"]["batch_parts"] = PARTS
    site.enqueue()
    arguments = ("--queue=parts", "--queue=migrate", "--processes=1", "--parallel=2", "--time-budget=0.2")

    never = threading.Event()

    def slow(seen: LoggedRequest) -> None:
        if sends_part(*ALL)(seen):
            never.wait(0.25)

    with site.log.telling(slow), site.migration.workers(1, *arguments, "--until-empty") as (worker,):
        assert worker.wait() == 0
    assert len(site.part_batches()) > 2
    assert site.sent() == Counter(ALL)
    assert set(site.migration.verdicts()) <= {"DONE", "RELEASED"}
    site.check_moved()


def test_a_part_that_fails_is_isolated_and_requeued(site: Site) -> None:
    site.migration.plan["migration"]["max_attempts"] = 1
    site.given()
    with site.log.refusing(sends_part(7), 400, "InvalidDigest"):
        site.work(again=1)
    (failed,) = [batch for batch in site.part_batches() if batch["status"] == "ERROR"]
    assert (failed["migrated"], failed["failed"]) == (3, 1)
    (objects,) = site.object_batches()
    assert (objects["status"], objects["failed"]) == ("ERROR", 1)
    assert "requeue" in site.migration.failures()[0]["error"]
    site.migration.execute("select rowferry.requeue()")
    site.work(again=1)
    assert site.sent() - Counter(ALL) == Counter({7: site.sent()[7] - 1})
    site.check_moved()


def test_another_production_object_is_left_alone(site: Site) -> None:
    site.migration.add(1, NAME, BODY)
    site.migration.production.put(TO + NAME, b"of another")
    site.enqueue()
    site.work()
    assert outcomes(site.object_batches()) == {"conflict": 1}
    assert site.begun() == 0
    assert site.migration.production.read(TO + NAME) == b"of another"
    assert site.migration.execute("select * from rowferry.upload") == []


def test_a_legacy_object_that_changes_in_between_begins_anew(both: Site) -> None:
    both.given()
    both.take_turns(2)
    assert both.recorded()
    both.migration.legacy.put(FROM + NAME, BODY[::-1])
    both.migration.bodies["1"] = BODY[::-1]
    both.work(again=2)
    assert both.begun() == 2
    assert outcomes(both.part_batches())["changed"] == PARTS - 4
    both.check_moved(BODY[::-1])


def test_the_bytes_of_parts_are_counted_once(site: Site) -> None:
    from rowferry_worker.monitoring import metrics

    size = metrics.object_bytes.labels("avatars", "parts")
    before = size._value.get()
    site.given().work()
    assert size._value.get() - before == len(BODY)


def test_an_upload_that_the_server_has_lost_begins_anew(site: Site) -> None:
    site.given()
    site.take_turns()
    (upload,) = site.migration.execute("select upload_id from rowferry.upload")
    site.migration.production.client.abort_multipart_upload(
        Bucket=site.migration.production.bucket, Key=TO + NAME, UploadId=upload["upload_id"]
    )
    site.work(again=1)
    site.check_arrived()
    assert site.begun() == 2
    site.migration.audit()


def test_rows_of_several_batches_share_the_upload_of_their_object(site: Site) -> None:
    site.migration.add(1, NAME, BODY)
    site.migration.add_row(2, FROM + NAME, BODY)
    site.migration.enqueue(1, queue="parts")
    assert len(site.object_batches()) == 2
    site.work(again=1)
    assert (site.begun(), site.sent()) == (1, Counter(ALL))
    site.check_moved()


def test_an_upload_that_nothing_completes_is_found_by_clean_uploads(site: Site) -> None:
    site.given()
    site.take_turns(2)
    (upload,) = site.migration.execute("select * from rowferry.open_uploads")
    assert upload["will_continue"]
    site.migration.execute("update rowferry.batch_queue set status = 'ERROR' where not payload ? 'upload'")
    (upload,) = site.migration.execute("select * from rowferry.open_uploads")
    assert not upload["will_continue"]


def test_objects_without_rows_are_shared_as_well(site: Site) -> None:
    site.migration.plan["entries"] = []
    site.migration.plan["objects"] = [{"prefix": FROM, "to": TO}]
    site.migration.legacy.put(FROM + NAME, BODY)
    site.migration.legacy.put(FROM + "small.png", b"small")
    site.enqueue()
    site.work()
    site.check_arrived()
    assert site.migration.production.read(TO + "small.png") == b"small"
    assert site.sent() == Counter(ALL)


def test_a_server_that_tells_no_digests_of_parts_gets_each_of_them_checked(make_migration: MakeMigration) -> None:
    with site_on_fake(make_migration, Deviations(md5_of_parts=False)) as site:
        site.given().work()
        site.check_moved()
