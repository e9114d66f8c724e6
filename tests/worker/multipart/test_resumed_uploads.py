"""A large object goes on at the missing part: after a crash, a stop, the end of the time budget; on any host."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.entries.parts_site import BODY, NAME, PARTS, Site, is_completion, sends_part
from support.processes.processes import wait_for
from support.processes.small_parts import PLAN_BYTES, small_parts
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations, ObjectWithAcl
from support.s3.fake_s3 import FakeAddress, running_fakes
from support.s3.request_log import LoggedRequest, RequestLog, logged


class UploadSite(Site):
    """A migration of one large object, the fake server that it lives on, and what that server was asked."""

    def __init__(self, migration: Migration, fake: FakeAddress, log: RequestLog) -> None:
        super().__init__(migration, log)
        self.fake = fake

    def written(self) -> Counter[int]:
        """Return how often each part was sent to the server, or copied by it."""
        return self.sent() + self.copied()

    def held_parts(self) -> set[int]:
        """Return the parts that the server holds of the one upload that is open."""
        (upload,) = self.fake.fake.store.uploads.values()
        return set(upload.parts)

    def uploads(self) -> list[dict[str, object]]:
        return self.migration.execute("select * from rowferry.open_uploads")

    def work_slowly(self, seconds: float) -> None:
        """Have a process work, whose time budget ends in the middle of the object: each part takes so long."""
        never = threading.Semaphore(0)

        def slow(seen: LoggedRequest) -> None:
            if sends_part(*range(1, PARTS + 1))(seen):
                never.acquire(timeout=seconds)

        arguments = ("--until-empty", "--time-budget=0.5", "--parallel=2")
        with self.log.telling(slow), self.migration.workers(1, *arguments) as (worker,):
            assert worker.wait() == 0

    def check_done(self) -> None:
        """Hold that the object and its row have arrived, and that nothing is left over."""
        assert self.migration.counts() == {"migrated": 1}
        self.migration.audit()
        assert (self.migration.production.open_uploads(), self.uploads()) == ([], [])
        assert self.migration.execute("select * from rowferry.upload") == []


MakeSite = Callable[..., UploadSite]


@pytest.fixture
def make_site(make_migration: Callable[..., Migration]) -> Iterator[MakeSite]:
    with ExitStack() as until:

        def make(transfer: str = "stream", deviations: Deviations | None = None) -> UploadSite:
            plain, fake = until.enter_context(running_fakes(Deviations(), deviations or Deviations()))
            buckets = until.enter_context(fresh_buckets(plain))
            log = until.enter_context(logged(fake.endpoint_url))
            migration = make_migration(buckets, buckets)
            migration.plan["migration"] |= {"transfer": transfer, "multipart_threshold_bytes": PLAN_BYTES}
            until.enter_context(small_parts(migration.folder))
            migration.reach_through(log.endpoint_url)
            migration.add(1, NAME, BODY)
            migration.enqueue()
            return UploadSite(migration, fake, log)

        yield make


@pytest.fixture(params=["server", "stream"])
def site(request: pytest.FixtureRequest, make_site: MakeSite) -> UploadSite:
    return make_site(request.param)


BY_STREAM = pytest.mark.parametrize("site", ["stream", pytest.param("server", marks=pytest.mark.soak)], indirect=True)
"""For what starts processes and does not depend on how a part gets there."""


def kill_at(site: UploadSite, *held: int) -> None:
    """Kill a worker once it has recorded all parts but those held."""
    others = {*range(1, PARTS + 1)} - {*held}
    with site.migration.workers(1) as (worker,), site.log.holding(sends_part(*held)) as waiting:
        wait_for(lambda: len(waiting) == len(held) and others <= site.recorded())
        worker.kill()


def test_a_killed_worker_costs_the_parts_that_were_under_way(site: UploadSite) -> None:
    kill_at(site, PARTS - 1, PARTS)
    (upload,) = site.uploads()
    assert (upload["key"], upload["will_continue"], upload["size_bytes"]) == (TO + NAME, True, len(BODY))
    site.migration.finish_after_kills()  # as on another host
    assert site.written() - Counter([*range(1, PARTS + 1), PARTS - 1, PARTS]) == Counter()
    assert site.begun() == 1
    site.check_done()


def begin_and_leave(site: UploadSite, *held: int) -> None:
    """Leave an upload behind that lacks these parts."""
    with site.log.refusing(sends_part(*held), 500, "InternalError"):
        site.migration.work()
    assert site.migration.verdicts() == ["RETRY"]
    site.migration.make_due()


@pytest.mark.by_day("stream")
def test_a_fault_of_the_server_leaves_the_upload_to_the_next_attempt(site: UploadSite) -> None:
    begin_and_leave(site, PARTS)
    before = site.written()
    site.migration.work()
    assert sum((site.written() - before).values()) <= 2
    site.check_done()


def rewrite(site: UploadSite) -> None:
    site.migration.bodies["1"] = BODY[::-1]
    site.migration.legacy.put(FROM + NAME, BODY[::-1])


def change_plan(site: UploadSite) -> None:
    site.migration.plan["production"]["acl"] = "public-read"
    site.migration.enqueue()


CHANGES: dict[str, Callable[[UploadSite], None]] = {
    "bytes": rewrite,
    "metadata": lambda site: site.migration.legacy.put(FROM + NAME, BODY, Metadata={"by": "me"}),
    "plan": change_plan,
    "upload gone": lambda site: site.fake.fake.store.uploads.clear(),
}


@pytest.mark.by_day("stream-*")
@pytest.mark.parametrize("change", CHANGES)
def test_an_upload_begins_anew_where_what_it_was_begun_for_has_changed(site: UploadSite, change: str) -> None:
    begin_and_leave(site, PARTS)
    CHANGES[change](site)
    site.log.seen.clear()
    site.migration.work()
    assert site.written() == Counter(range(1, PARTS + 1))
    site.check_done()
    written = site.fake.fake.store.bucket(site.migration.production.bucket).find(TO + NAME)
    assert written is not None
    acl = written.acl if isinstance(written, ObjectWithAcl) else "private"
    assert acl == ("public-read" if change == "plan" else "private")
    assert written.headers.get("x-amz-meta-by") == ("me" if change == "metadata" else None)


@pytest.mark.by_day("stream")
@pytest.mark.parametrize("status", [400, 200])
def test_an_upload_of_which_the_server_has_lost_a_part_begins_anew(site: UploadSite, status: int) -> None:
    """Whether that is said at once, or within a success that had begun."""
    begin_and_leave(site, PARTS)
    (upload,) = site.fake.fake.store.uploads.values()
    del upload.parts[3]
    upload.parts[4] = type(upload.parts[4])(b"x", "e" * 32, 1, {}, {}, 0.0)
    with site.log.refusing(is_completion, status, "InvalidPart"):
        site.migration.work()
    assert site.migration.verdicts()[-1] == "RETRY"
    site.log.seen.clear()
    site.migration.make_due()
    site.migration.work()
    assert site.written() == Counter(range(1, PARTS + 1))
    site.check_done()


@BY_STREAM
def test_rows_of_several_batches_that_share_an_object_send_it_once(site: UploadSite) -> None:
    migration = site.migration
    migration.add_row(2, FROM + NAME, BODY)
    migration.enqueue(batch_size=1)
    assert len(migration.batches()) == 2
    with site.log.holding(sends_part(PARTS)) as held, migration.workers(2, "--until-empty") as workers:
        wait_for(lambda: held)
        wait_for(lambda: len(migration.execute("select from rowferry.batch_attempt")) == 2)
        wait_for(lambda: len(site.held_parts()) == PARTS - 1)
        # The workers were killed with the block; two others finish.
        del workers
    with migration.workers(2, "--until-empty") as workers:
        assert [worker.wait() for worker in workers] == [0, 0]
    assert migration.counts() == {"migrated": 1, "kept": 1}
    assert max(site.written().values()) <= 2
    assert (migration.production.open_uploads(), site.uploads()) == ([], [])
    migration.audit()


@BY_STREAM
def test_the_time_budget_ends_in_the_middle_of_an_object(site: UploadSite) -> None:
    """A slow link: each claim sends some parts, and no attempt counts."""
    migration = site.migration
    migration.given(5, start=10)
    site.work_slowly(0.2)
    verdicts = migration.verdicts()
    assert set(verdicts) <= {"DONE", "RELEASED"}
    assert len(verdicts) > 2
    assert site.written() == Counter(range(1, PARTS + 1))
    assert migration.counts() == {"migrated": 6}
    migration.audit()
    assert (migration.production.open_uploads(), site.uploads()) == ([], [])


def test_a_server_without_a_list_of_parts_goes_on_with_what_is_recorded(make_site: MakeSite) -> None:
    site = make_site("stream", Deviations(lists_parts=False))
    site.work_slowly(0.3)
    assert site.written() == Counter(range(1, PARTS + 1))
    site.check_done()


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "dropped"])
@pytest.mark.by_day("dropped")
def test_what_the_plan_says_of_objects_survives_a_kill(make_site: MakeSite, keeps: bool) -> None:
    """The upload was created with its properties by the worker that was killed; another completes it."""
    site = make_site("stream", Deviations() if keeps else Deviations(keeps_acl=frozenset()))
    of_plan = {"acl": "public-read", "cache_control": "max-age=60", "encryption": "AES256", "tags": "none"}
    site.migration.plan["production"] |= of_plan
    site.migration.enqueue()
    kill_at(site, PARTS)
    site.migration.finish_after_kills()
    assert site.written() - Counter([*range(1, PARTS + 1), PARTS]) == Counter()
    site.check_done()
    written = site.fake.fake.store.bucket(site.migration.production.bucket).find(TO + NAME)
    assert isinstance(written, ObjectWithAcl)
    assert written.acl == "public-read"
    assert (written.headers["cache-control"], written.headers["x-amz-server-side-encryption"]) == (
        "max-age=60",
        "AES256",
    )
