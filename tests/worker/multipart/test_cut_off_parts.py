"""A server may keep what came of a part that was cut off: the next attempt sends all that is not recorded."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import NOTHING, Upload, make_object
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.small_parts import PART_BYTES, PLAN_BYTES, small_parts
from support.s3 import fake_s3
from support.s3.bodies import make_body
from support.s3.buckets import fresh_buckets
from support.s3.deviations import Deviations
from support.s3.fake_s3 import FakeAddress, Link, running_fakes

PARTS = 10
BODY = make_body(PARTS * PART_BYTES - 1000)
NAME = "large.bin"
ALL = Counter(range(1, PARTS + 1))
SLOW = Link(connection_bytes_per_second=PART_BYTES / 1.3)
REAL_PARTS = 4
REAL_BODY = make_body(REAL_PARTS * PLAN_BYTES - 1000)
"""In parts of the smallest size that a plan may ask for."""


class Site:
    """A migration of one large object between two addresses of the fake server, and what the server was asked."""

    def __init__(self, migration: Migration, legacy: FakeAddress, production: FakeAddress) -> None:
        self.migration, self.legacy, self.production = migration, legacy, production
        self.slow, self.slow_link = legacy, SLOW
        self.requests: list[Request] = []
        legacy.fake.before = production.fake.before = self.requests.append

    def finished(self) -> Counter[int]:
        """Return how often each part came with its whole body."""
        return Counter(self._parts("UploadPart"))

    def unsigned(self) -> set[int]:
        """Return the parts that came without Content-MD5."""
        return {
            int(seen.query["partNumber"])
            for seen in self.requests
            if seen.operation == "UploadPart" and not seen.header(b"content-md5")
        }

    def read(self) -> Counter[int]:
        """Return how often each part was read from the legacy side."""
        ranges = [seen.header(b"range") for seen in self.requests if seen.operation == "GetObject"]
        return Counter(int(span.removeprefix("bytes=").split("-")[0]) // PART_BYTES + 1 for span in ranges if span)

    def upload(self) -> Upload:
        (upload,) = self.production.fake.store.uploads.values()
        return upload

    def recorded(self) -> dict[str, str]:
        rows = self.migration.execute("select number, etag from rowferry.upload_part order by number")
        return {str(row["number"]): row["etag"] for row in rows}

    def forget_recorded(self) -> None:
        self.migration.execute("delete from rowferry.upload_part")

    def finish(self) -> None:
        """Let another worker, as on another host, do what is left, and hold that the object is right."""
        self.slow.fake.link = Link()
        self.requests.clear()
        self.migration.finish_after_kills()
        self.check_done()

    def check_done(self) -> None:
        assert self.migration.counts() == {"migrated": 1}
        self.migration.audit()
        assert self.migration.production.read(TO + NAME) == self.migration.bodies["1"]
        assert self.migration.production.open_uploads() == []
        assert self.migration.execute("select from rowferry.upload") == []

    def _parts(self, operation: str) -> Iterator[int]:
        return (int(seen.query["partNumber"]) for seen in self.requests if seen.operation == operation)


MakeSite = Callable[[Deviations], Site]
MakeMigration = Callable[..., Migration]


@pytest.fixture
def make_site(make_migration: MakeMigration, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSite]:
    """A site of small parts, which are sent as they are read from a slow source."""
    monkeypatch.setattr(fake_s3, "SLICE_BYTES", PART_BYTES // 16)  # for parts that are under way for long
    with ExitStack() as until:

        def make(deviations: Deviations) -> Site:
            site = until.enter_context(open_site(make_migration, deviations, BODY))
            until.enter_context(small_parts(site.migration.folder, piped=True))
            return site

        yield make


@contextmanager
def open_site(make_migration: MakeMigration, deviations: Deviations, body: bytes) -> Iterator[Site]:
    with (
        running_fakes(Deviations(), deviations) as (legacy, production),
        fresh_buckets(legacy) as sources,
        fresh_buckets(production) as targets,
    ):
        migration = make_migration(sources, targets)
        migration.plan["migration"]["multipart_threshold_bytes"] = PLAN_BYTES
        migration.add(1, NAME, body)
        migration.enqueue()
        yield Site(migration, legacy, production)


def kill_in_the_middle(site: Site, *, sent: int, recorded: int = 0) -> set[int]:
    """Kill a worker that has sent so many parts while others are on their way; return those that were cut off.

    Parts that are sent as they are read leave nothing that the kernel could send after the kill.
    """
    production = site.production.fake
    others = len(production.connections)
    site.slow.fake.link = site.slow_link
    with site.migration.workers(1, "--parallel=2") as (worker,):
        wait_for(lambda: sum(site.finished().values()) >= sent and len(site.recorded()) >= recorded)
        before = production.bytes_received
        wait_for(lambda: production.bytes_received > before + len(site.migration.bodies["1"]) // (4 * PARTS))
        worker.kill()
    wait_for(lambda: len(production.connections) <= others)
    return set(site.upload().parts) - set(site.finished())


@pytest.mark.parametrize("checks_md5", [True, False], ids=["checks", "ignores"])
@pytest.mark.by_day("ignores")
def test_a_part_that_was_cut_off_and_kept_is_sent_again(make_site: MakeSite, checks_md5: bool) -> None:
    site = make_site(Deviations(keeps_cut_parts=True, checks_md5=checks_md5))
    cut_off = kill_in_the_middle(site, sent=PARTS - 4)
    recorded = {int(number) for number in site.recorded()}
    assert max(site.finished().values()) == 1
    site.finish()
    assert cut_off or checks_md5
    assert not cut_off & recorded
    assert set(site.finished()) == set(ALL) - recorded


@pytest.mark.parametrize("damage", [os.urandom, pytest.param(bytes, marks=pytest.mark.soak)], ids=["noise", "zeros"])
def test_what_is_held_and_not_recorded_is_sent_again(make_site: MakeSite, damage: Callable[[int], bytes]) -> None:
    site = make_site(Deviations())
    kill_in_the_middle(site, sent=6, recorded=4)
    damaged = sorted(int(number) for number in site.recorded())[1]
    site.forget_recorded()
    site.upload().parts[damaged] = make_object(damage(PART_BYTES), {}, NOTHING)
    site.finish()
    assert site.finished() == ALL


def test_recorded_parts_are_neither_read_nor_sent_again(make_site: MakeSite) -> None:
    site = make_site(Deviations())
    kill_in_the_middle(site, sent=6, recorded=4)
    held = dict(site.upload().parts)
    recorded = {int(number): etag for number, etag in site.recorded().items()}
    assert {number: held[number].etag for number in recorded} == recorded
    site.finish()
    assert set(site.finished()) == set(ALL) - set(recorded)
    assert not set(site.read()) & set(recorded)


def test_parts_are_passed_on_while_they_are_read(make_site: MakeSite) -> None:
    site = make_site(Deviations())
    site.migration.work()
    assert (site.finished(), site.unsigned()) == (ALL, set(ALL))
    site.check_done()


def test_a_server_with_other_etags_gets_content_md5(make_migration: MakeMigration) -> None:
    """Such parts are read whole before they are sent: only large ones can be cut off."""
    with open_site(make_migration, Deviations(md5_of_parts=False, keeps_cut_parts=True), REAL_BODY) as site:
        site.slow, site.slow_link = site.production, Link(connection_bytes_per_second=4e6)
        cut_off = kill_in_the_middle(site, sent=REAL_PARTS, recorded=2)
        recorded = {int(number) for number in site.recorded()}
        assert not cut_off  # since the server refuses what came of a part that has another MD5 than its Content-MD5
        site.finish()
        assert set(site.finished()) == set(range(1, REAL_PARTS + 1)) - recorded


def test_a_new_upload_begins_without_parts(make_site: MakeSite) -> None:
    site = make_site(Deviations())
    kill_in_the_middle(site, sent=4, recorded=2)
    site.production.fake.store.uploads.clear()
    assert len(site.recorded()) >= 2
    site.migration.execute("delete from rowferry.worker")  # lest a claim waits for the heartbeats of the killed one
    kill_in_the_middle(site, sent=2)
    held = site.upload().parts
    assert all(held[int(number)].etag == etag for number, etag in site.recorded().items())
    site.finish()
