"""What the plan says of production objects, they are: however they get there, and whatever the server promises."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import StoredObject
from rowferry_lab.servers.fake_s3.store import compute_md5 as md5
from support.entries.entry_table import FROM, TO
from support.entries.estimating import FakeMigration, fake_migration
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.small_parts import PART_BYTES, PLAN_BYTES, small_parts
from support.queue.queue_runs import outcomes, verify
from support.s3.deviations import Deviations, ObjectWithAcl, changed
from support.s3.request_log import LoggedRequest, logged

pytestmark = pytest.mark.by_day("copied", "streamed in parts", "copied-*", "streamed in parts-*")

KEPT = {"content-type": "image/x-odd", "content-encoding": "x-odd", "content-language": "de", "x-amz-meta-author": "me"}
"""Headers of a legacy object that no plan changes."""
GIVEN = {
    "ContentType": KEPT["content-type"],
    "ContentEncoding": KEPT["content-encoding"],
    "ContentLanguage": KEPT["content-language"],
    "Metadata": {"author": "me"},
    "CacheControl": "no-store",
    "ContentDisposition": "attachment",
    "Tagging": "kind=cat",
}
OF_PLAN = {
    "acl": "public-read",
    "cache_control": "public, max-age=31536000, immutable",
    "content_disposition": "inline",
    "storage_class": "STANDARD_IA",
    "encryption": "AES256",
}
EXPECTED = {
    **KEPT,
    "cache-control": OF_PLAN["cache_control"],
    "content-disposition": "inline",
    "x-amz-storage-class": "STANDARD_IA",
    "x-amz-server-side-encryption": "AES256",
}
NO_ACL = Deviations(knows_acl=False)
NEW = f"{TO}1.png"


@dataclass
class Site:
    """A migration, and how its objects go."""

    found: FakeMigration
    body: bytes

    @property
    def migration(self) -> Migration:
        return self.found.migration

    def add(self, number: int = 1, **properties: Any) -> None:
        self.migration.add(number, f"{number}.png", self.body, **properties)

    def run(self, **of_plan: Any) -> dict[str, int]:
        """Migrate with these properties in the plan, and return the outcomes."""
        self.migration.plan["production"] |= of_plan
        return self.migration.migrate()

    def written(self, key: str = NEW) -> ObjectWithAcl:
        stored = self.found.production.fake.store.bucket(self.migration.production.bucket).find(key)
        assert stored is not None
        return changed(stored)

    def set_acl(self, key: str, acl: str) -> None:
        """Give a legacy object an ACL that no request could give it."""
        bucket = self.found.legacy.fake.store.bucket(self.migration.legacy.bucket)
        stored = bucket.find(key)
        assert stored is not None
        bucket.put(key, changed(stored, acl=acl))


WAYS = {
    "copied": (True, None),
    "copied in parts": (True, PART_BYTES),
    "streamed": (False, None),
    "streamed in parts": (False, PART_BYTES),
}
"""Whether the server copies, and the size above which objects go in parts."""
MakeSite = Callable[..., Site]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make_site(make_migration: Callable[..., Migration], way: str) -> Iterator[MakeSite]:
    with ExitStack() as until:

        def make(deviations: Deviations | None = None) -> Site:
            server_side, threshold = WAYS[way]
            found = until.enter_context(fake_migration(make_migration, deviations, server_side=server_side))
            if threshold is not None:
                found.migration.plan["migration"]["multipart_threshold_bytes"] = PLAN_BYTES
                until.enter_context(small_parts(found.migration.folder))
            return Site(found, bytes(threshold or 0) + b"body")

        yield make


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    return make_site()


LEGACY = {**KEPT, "cache-control": "no-store", "content-disposition": "attachment"}
SAID: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "all": (OF_PLAN, EXPECTED, "public-read"),
    "one": ({"cache_control": "max-age=1"}, {**LEGACY, "cache-control": "max-age=1"}, "private"),
    "nothing": ({}, LEGACY, "private"),
}
"""What the plan says, and the headers and the ACL that production objects have then."""


@pytest.mark.parametrize("said", SAID)
def test_objects_are_what_the_plan_says_and_all_else_is_kept(site: Site, said: str) -> None:
    of_plan, headers, acl = SAID[said]
    site.add(**GIVEN, ACL="authenticated-read")
    assert site.run(**of_plan) == {"migrated": 1}
    written = site.written()
    assert dict(written.headers) == headers
    assert (written.acl, dict(written.tags), written.body) == (acl, {"kind": "cat"}, site.body)


@pytest.mark.parametrize(
    ("rule", "expected"), [("none", {}), ({"team": "a b", "x": ""}, {"team": "a b", "x": ""})], ids=["none", "given"]
)
@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "dropped"])
def test_tags_of_the_plan_stand_in_the_place_of_the_copied_ones(
    make_site: MakeSite, keeps: bool, rule: object, expected: dict[str, str]
) -> None:
    site = make_site(Deviations() if keeps else Deviations(keeps_tags=frozenset()))
    site.add(1, Tagging="kind=cat")
    site.migration.legacy.tag(f"{FROM}1.png", {"kind": "cat"})
    site.add(2)
    assert site.run(tags=rule) == {"migrated": 2}
    assert [dict(site.written(f"{TO}{number}.png").tags) for number in (1, 2)] == [expected, expected]


@pytest.mark.parametrize("removes", [True, False], ids=["removed", "stay"])
@pytest.mark.parametrize("way", ["copied"], indirect=True)
def test_tags_that_a_copy_brings_along_in_spite_of_the_plan_are_removed_or_no_row_moves(
    make_site: MakeSite, removes: bool
) -> None:
    site = make_site(Deviations(tagging_directive=False, removes_tags=removes))
    site.add(1, **({} if removes else {"Tagging": "kind=cat"}))
    for number in range(2, 41):
        site.add(number, Tagging="kind=cat")
    assert site.run(tags="none") == {"migrated" if removes else "failed": 40}
    if removes:
        assert [dict(site.written(f"{TO}{number}.png").tags) for number in range(1, 41)] == [{}] * 40
        return
    (_, code, words, *_) = site.migration.failure_of(40)
    assert code == "TagsUnwanted"
    assert 'set `transfer = "stream"`' in words


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "dropped"])
def test_an_acl_is_copied_where_it_is_a_canned_one(make_site: MakeSite, keeps: bool) -> None:
    """SeaweedFS drops the ACL of PutObject and of CreateMultipartUpload, and takes it from PutObjectAcl."""
    site = make_site(Deviations() if keeps else Deviations(keeps_acl=frozenset()))
    acls = ["private", "public-read", "authenticated-read", "public-read-write", "to-an-account", "public-read"]
    for number, acl in enumerate(acls):
        site.add(number)
        site.set_acl(f"{FROM}{number}.png", acl)
    assert site.run(acl="copy") == {"migrated": 5, "failed": 1}
    arrived = {number: acl for number, acl in enumerate(acls) if acl != "to-an-account"}
    assert {number: site.written(f"{TO}{number}.png").acl for number in arrived} == arrived
    outcome, _, error = site.migration.failure_of(4)
    assert outcome == "failed"
    assert "AclNotCanned" in error
    assert "set `acl` of [production] to a canned ACL" in error
    site.migration.audit(legacy_left=["4"])


def test_each_acl_is_looked_at_once(site: Site) -> None:
    for number in range(1, 6):
        site.add(number)
    with site.found.counting() as sent:
        site.migration.plan["production"]["acl"] = "public-read"
        site.migration.migrate(parallel=1)
    assert sent["production", "GetObjectAcl"] == 1
    assert sent["production", "PutObjectAcl"] == sent["legacy", "GetObjectAcl"] == 0


@pytest.mark.parametrize(
    "deviations", [Deviations(keeps_acl=frozenset(), puts_acl=False), NO_ACL], ids=["ignored", "unknown"]
)
def test_a_row_moves_only_to_an_object_with_its_acl(make_site: MakeSite, deviations: Deviations) -> None:
    """A server without ACLs would take PutObjectAcl for the object itself. A rerun finds the object without its ACL."""
    site = make_site(deviations)
    for number in range(1, 4):
        site.add(number)
    for _ in range(2):
        assert site.run(acl="public-read") == {"failed": 3}
        assert {"AclLost"} == {failure["reason"].split(": ")[-1] for failure in site.migration.failures()}
        site.migration.audit(legacy_left=["1", "2", "3"])
        site.migration.execute("update rowferry.batch_queue set status = 'INIT'")
    for key in site.migration.production.listing():
        assert site.written(key).body == site.body


def test_a_server_that_loses_an_acl_gets_no_more_objects(make_site: MakeSite, way: str) -> None:
    site = make_site(NO_ACL)
    for number in range(1, 9):
        site.add(number)
    site.migration.plan["production"]["acl"] = "public-read"
    assert site.migration.migrate(parallel=1) == {"failed": 8}
    assert len(site.migration.production.listing()) == 1


def test_legacy_acls_that_are_not_told_are_named(make_site: MakeSite) -> None:
    site = make_site(NO_ACL)
    site.add()
    assert site.run(acl="copy") == {"failed": 1}
    assert "the server tells no ACLs: set `acl` of [production]" in site.migration.failure_of(1)[2]
    assert site.migration.production.listing() == {}


def looks_at_acl(seen: LoggedRequest) -> bool:
    return seen.method == "GET" and seen.query.startswith("acl") and seen.bucket.startswith("production-")


@pytest.mark.parametrize(
    "way",
    ["streamed in parts", *(pytest.param(way, marks=pytest.mark.soak) for way in WAYS if way != "streamed in parts")],
    indirect=True,
)
def test_a_worker_that_dies_before_it_puts_an_acl_leaves_that_to_the_next(make_site: MakeSite) -> None:
    site = make_site(Deviations(keeps_acl=frozenset()))
    site.add()
    with logged(site.found.production.endpoint_url) as log:
        site.migration.plan["production"] |= {"endpoint_url": log.endpoint_url, "acl": "public-read"}
        if site.migration.legacy.endpoint_url == site.migration.production.endpoint_url:
            site.migration.plan["legacy"]["endpoint_url"] = log.endpoint_url
        site.migration.enqueue()
        with site.migration.workers(1) as (worker,), log.holding(looks_at_acl) as held:
            wait_for(lambda: held)
            worker.kill()
        assert site.written().acl == "private"
        assert site.migration.rows() == {"1": f"{FROM}1.png"}
        site.migration.finish_after_kills()
    assert site.migration.counts() == {"kept": 1}
    assert site.written().acl == "public-read"


def put_twin(site: Site, **properties: Any) -> None:
    site.add(**GIVEN)
    site.migration.production.put(NEW, site.body, **properties)


@pytest.mark.parametrize("rule", ["public-read", "copy"])
def test_an_identical_object_is_kept_and_gets_its_acl(site: Site, rule: str) -> None:
    """Its headers stay: only a copy could change them. `rowferry verify` tells."""
    put_twin(site, CacheControl="no-cache", Tagging="a=b")
    site.set_acl(f"{FROM}1.png", "public-read")
    assert site.run(acl=rule, cache_control="max-age=1") == {"kept": 1}
    written = site.written()
    assert (written.acl, written.headers["cache-control"], dict(written.tags)) == (
        "public-read",
        "no-cache",
        {"a": "b"},
    )


@pytest.mark.parametrize("on_conflict", ["fail", "keep", "overwrite"])
def test_a_row_does_not_move_to_an_object_that_is_not_encrypted_unless_that_is_allowed(
    site: Site, on_conflict: str
) -> None:
    put_twin(site)
    site.migration.plan["production"]["encryption"] = "aws:kms"
    outcome = {"fail": "failed", "keep": "kept", "overwrite": "migrated"}[on_conflict]
    assert site.migration.migrate(on_conflict=on_conflict) == {outcome: 1}
    if on_conflict == "fail":
        assert "NotEncrypted" in site.migration.failure_of(1)[2]
    encryption = site.written().headers.get("x-amz-server-side-encryption")
    assert encryption == ("aws:kms" if on_conflict == "overwrite" else None)


def test_a_server_that_does_not_encrypt_gets_no_rows(make_site: MakeSite) -> None:
    site = make_site(Deviations(encrypts=False))
    for number in range(1, 4):
        site.add(number)
    for names in ("what (PutObject|CopyObject|CreateMultipartUpload) writes", "NotEncrypted"):
        assert site.run(encryption="AES256") == {"failed": 3}
        errors = [site.migration.failure_of(number)[2] for number in range(1, 4)]
        assert all("NotEncrypted" in error for error in errors)
        assert all(re.search(names, error) for error in errors)
        site.migration.execute("update rowferry.batch_queue set status = 'INIT'")


def test_the_metadata_of_a_copy_are_those_of_its_bytes(make_migration: Callable[..., Migration]) -> None:
    """Ceph and moto ignore the pin of CopyObject: what was copied may be a later object than what was looked at."""
    with fake_migration(make_migration, Deviations(source_if_match=False), server_side=True) as found:
        site = Site(found, b"body")
        site.add(ContentType="image/old")
        changes = iter([b"newer", b"newest"])

        def change(request: Request) -> None:
            body = next(changes, None) if request.operation == "CopyObject" else None
            if body is not None:
                content_type = f"image/{body.decode()}"
                bucket = found.legacy.fake.store.bucket(found.migration.legacy.bucket)
                stored = bucket.find(f"{FROM}1.png")
                assert stored is not None
                later = StoredObject(body, md5(body), len(body), {"content-type": content_type}, {}, stored.written + 1)
                bucket.put(f"{FROM}1.png", later)

        found.legacy.fake.before = change
        site.migration.bodies.clear()
        assert site.run(cache_control="max-age=1") == {"migrated": 1}
        written = site.written()
        assert written.body == b"newest"
        assert dict(written.headers) == {"content-type": "image/newest", "cache-control": "max-age=1"}


def test_verify_tells_what_a_production_object_is_not_and_repairs_it_where_asked_to(site: Site) -> None:
    site.add(**GIVEN)
    site.run()
    site.migration.plan["production"] |= OF_PLAN
    (batch,) = verify(site.migration)
    assert outcomes([batch]) == {"conflict": 1}
    (failure,) = [one for one in site.migration.failures() if one["batch_id"] == batch["id"]]
    assert "PropertiesDiffer" in failure["error"]
    for part in ("cache-control is 'no-store'", "content-disposition", "encryption", "ACL is not 'public-read'"):
        assert part in failure["error"]
    assert outcomes(verify(site.migration, repair="older")) == {"conflict": 1}
    assert outcomes(verify(site.migration, repair="all")) == {"migrated": 1}
    assert (dict(site.written().headers), site.written().acl) == (EXPECTED, "public-read")
    assert outcomes(verify(site.migration)[1:]) == {"kept": 1}
