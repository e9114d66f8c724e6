"""A check tries what the plan says of production objects, and fetches one as the public would."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from rowferry_enqueue.checks.finding import Finding
from support.entries.checks import check
from support.entries.entry_table import FROM, TO
from support.entries.estimating import fake_migration
from support.entries.migration import Migration
from support.s3.deviations import Deviations
from support.s3.request_log import RequestLog, logged
from support.s3.stand_in import StandIn, answer

ALL = {
    "acl": "public-read",
    "cache_control": "max-age=60",
    "content_disposition": "inline",
    "storage_class": "STANDARD_IA",
    "encryption": "AES256",
    "tags": {"team": "a b"},
}

MakeSite = Callable[..., tuple[Migration, RequestLog]]


@pytest.fixture(params=["server", "stream"])
def make_site(request: pytest.FixtureRequest, make_migration: Callable[..., Migration]) -> Iterator[MakeSite]:
    """Make a migration of one object whose requests to the production side are logged."""
    with ExitStack() as until:

        def make(deviations: Deviations | None = None, **of_plan: Any) -> tuple[Migration, RequestLog]:
            server_side = request.param == "server"
            found = until.enter_context(fake_migration(make_migration, deviations, server_side=server_side))
            log = until.enter_context(logged(found.production.endpoint_url))
            migration = found.migration
            migration.plan["production"] |= {"endpoint_url": log.endpoint_url, **of_plan}
            if server_side:
                migration.plan["legacy"]["endpoint_url"] = log.endpoint_url
            migration.add(1, "1.png", b"body", Tagging="kind=cat")
            return migration, log

        yield make


def problems(findings: list[Finding]) -> list[str]:
    return [f"{one.what}; {one.remedy}" for one in findings if one.level == "problem"]


def find(findings: list[Finding], words: str) -> Finding:
    (found,) = [one for one in findings if words in one.what]
    return found


def test_what_the_server_does_is_fine_and_nothing_is_left_behind(make_site: MakeSite) -> None:
    migration, _ = make_site(**ALL)
    findings = check(migration)
    assert problems(findings) == []
    names = "cache_control, content_disposition, storage_class, encryption, tags, acl"
    assert find(findings, f"production objects become what the plan says: {names}").level == "fine"
    assert migration.production.listing() == {}
    assert migration.production.open_uploads() == []


def test_a_plan_that_says_nothing_costs_no_probe_and_one_without_tags_is_fine(make_site: MakeSite) -> None:
    migration, log = make_site()
    check(migration)
    assert not [seen for seen in log.seen if "-shaped" in seen.key]
    migration.plan["production"]["tags"] = "none"
    assert problems(check(migration)) == []


REFUSED = (
    ("acl", "x-amz-acl", 403, "AccessDenied", "give the production credentials s3:PutObjectAcl"),
    ("storage_class", "x-amz-storage-class", 403, "AccessDenied", "give the production credentials s3:PutObject"),
    ("tags", "x-amz-tagging", 403, "AccessDenied", "give the production credentials s3:PutObjectTagging"),
    ("acl", "x-amz-acl", 400, "AccessControlListNotSupported", "leave `acl` out of [production]"),
)


def test_a_property_that_is_refused_is_named_with_its_remedy(make_site: MakeSite, subtests: pytest.Subtests) -> None:
    migration, log = make_site(**ALL)
    for name, header, status, code, remedy in REFUSED:
        with subtests.test(f"{name} {code}"):
            with log.refusing(lambda seen, header=header: header in seen.headers, status, code):
                (words,) = problems(check(migration))
            assert f"the production server refuses `{name}` of the plan" in words
            assert code in words
            assert remedy in words
            assert migration.production.listing() == {}


@pytest.mark.parametrize(
    ("deviations", "words"),
    [
        (Deviations(keeps_acl=frozenset(), puts_acl=False), "does not make an object public-read"),
        (Deviations(knows_acl=False), "knows no ACLs"),
        (Deviations(encrypts=False), "x-amz-server-side-encryption is '' instead of 'AES256'"),
    ],
    ids=["ignored", "unknown", "not encrypted"],
)
def test_what_a_server_ignores_is_a_problem(make_site: MakeSite, deviations: Deviations, words: str) -> None:
    migration, _ = make_site(deviations, **ALL)
    found = problems(check(migration))
    assert found
    assert all(words in one for one in found)
    assert migration.production.listing() == {}


def test_an_acl_that_has_to_be_put_afterwards_is_a_note(make_site: MakeSite) -> None:
    migration, _ = make_site(Deviations(keeps_acl=frozenset()), acl="public-read")
    findings = check(migration)
    assert problems(findings) == []
    told = [one.level for one in findings if "is dropped, so it costs each object one more request" in one.what]
    assert told == ["note"] * 2


@pytest.mark.parametrize("make_site", ["server"], indirect=True)
def test_a_server_that_does_not_heed_the_directive_for_tags_is_a_problem(make_site: MakeSite) -> None:
    migration, _ = make_site(Deviations(tagging_directive=False), tags="none")
    words = 'CopyObject brings tags along in spite of `tags = "none"`; set `transfer = "stream"`'
    assert problems(check(migration)) == [words]


def test_public_objects_that_would_become_private_are_told_of(make_site: MakeSite) -> None:
    migration, _ = make_site()
    assert not [one for one in check(migration) if "their copies get no ACL" in one.what]
    migration.legacy.client.put_object_acl(Bucket=migration.legacy.bucket, Key=f"{FROM}1.png", ACL="public-read")
    finding = find(check(migration), "legacy objects are public-read")
    assert (finding.level, 'add `acl = "copy"`' in finding.remedy) == ("note", True)
    migration.plan["production"]["acl"] = "copy"
    findings = check(migration)
    assert problems(findings) == []
    assert find(findings, "is public-read, and so will be that of its copy")


def test_legacy_acls_that_cannot_be_read_are_a_problem(make_site: MakeSite) -> None:
    migration, log = make_site(acl="copy")
    migration.plan["legacy"]["endpoint_url"] = log.endpoint_url

    def asks_legacy(seen: Any) -> bool:
        return seen.bucket == migration.legacy.bucket and seen.query.startswith("acl")

    told = {
        (403, "AccessDenied"): "give the legacy credentials s3:GetObjectAcl",
        (501, "NotImplemented"): "tells no ACLs",
    }
    for refusal, expected in told.items():
        with log.refusing(asks_legacy, *refusal):
            (words,) = problems(check(migration))
        assert expected in words


def served(migration: Migration, *, everything: bool = False) -> StandIn:
    """Return a web server in front of the production bucket, which shows only what is public unless told otherwise."""

    def judge(head: str) -> Any:
        key = head.split(" ")[1].removeprefix("/files/")
        body = migration.production.read(key)
        if body is None:
            return answer(404)
        acl = migration.production.client.get_object_acl(Bucket=migration.production.bucket, Key=key)["Grants"]
        is_public = any("URI" in grant["Grantee"] for grant in acl)
        return answer(200, body) if is_public or everything else answer(403)

    return StandIn().judging(judge)


def test_public_url_is_fetched_once_and_private_objects_are_a_problem_with_a_next_step(make_site: MakeSite) -> None:
    migration, _ = make_site(acl="public-read")
    with served(migration) as web:
        migration.plan["production"]["public_url"] = f"{web.endpoint_url}/files"
        findings = check(migration)
        assert problems(findings) == []
        assert find(findings, "shows the probe to anybody").level == "fine"
        (line,) = web.request_lines
        assert "/files/rowferry-check-" in line
        del migration.plan["production"]["acl"]
        (words,) = problems(check(migration))
    assert "answers 403" in words
    assert 'add `acl = "public-read"` or "copy" to [production]' in words


def test_a_url_that_leads_elsewhere_or_that_nobody_serves_is_a_problem(make_site: MakeSite) -> None:
    migration, _ = make_site(acl="public-read", public_url="http://127.0.0.1:9/")
    (words,) = problems(check(migration))
    assert "cannot be fetched: [Errno" in words
    for behaviour in (answer(404), answer(200, b"<html>hello</html>")):
        with StandIn(behaviour) as web:
            migration.plan["production"]["public_url"] = web.endpoint_url
            (words,) = problems(check(migration))
        assert "correct public_url" in words


def test_a_policy_that_makes_only_the_prefix_public_is_enough_where_there_is_an_object(make_site: MakeSite) -> None:
    migration, _ = make_site()
    with served(migration) as web:
        migration.plan["production"]["public_url"] = f"{web.endpoint_url}/files/"
        finding = find(check(migration, may_write=False), "whether public_url leads to production objects")
        assert (finding.level, migration.production.listing()) == ("note", {})
        migration.production.put(f"{TO}old.png", b"old", ACL="public-read")
        findings = check(migration)
        assert problems(findings) == []
        assert "but not the probe" in find(findings, "public_url leads").what
        findings = check(migration, may_write=False)
    assert find(findings, "public_url leads").level == "fine"
