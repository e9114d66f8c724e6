"""A later pass replaces the copy that an earlier pass has left, and nothing else, whatever happens meanwhile."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from support.entries.entry_table import TO
from support.entries.parts_site import (
    BODY,
    NAME,
    PART_BYTES,
    PARTS,
    MakeMigration,
    Site,
    begins,
    change_bytes,
    copy_again,
    copy_first,
    go_on,
    is_completion,
    kill_when,
    real_body,
    sends_part,
    site_on,
    site_on_fake,
)
from support.queue.queue_runs import outcomes
from support.s3.buckets import Buckets
from support.s3.deviations import Deviations
from support.s3.request_log import LoggedRequest

ALL = {*range(1, PARTS + 1)}
CHANGED = change_bytes(0, 7 * PART_BYTES)(BODY)
THEIRS = b"of the application"


@pytest.fixture
def site(make_migration: MakeMigration) -> Iterator[Site]:
    """A large object that an earlier pass has copied; its row has not followed."""
    with site_on_fake(make_migration, replace="own", then=[]) as site:
        copy_first(site)
        yield site


def first(matches: Callable[[LoggedRequest], bool]) -> Callable[[LoggedRequest], bool]:
    """Return what matches the first of these requests."""
    seen: list[LoggedRequest] = []

    def is_first(request: LoggedRequest) -> bool:
        if matches(request):
            seen.append(request)
        return bool(seen) and seen[0] is request

    return is_first


def when_completed(action: Callable[[], object]) -> Callable[[LoggedRequest], object]:
    """Return what acts right before the server sees the first completion."""
    is_due = first(is_completion)
    return lambda seen: action() if is_due(seen) else None


def test_what_is_written_right_before_the_completion_is_not_replaced(site: Site) -> None:
    with site.log.telling(when_completed(lambda: site.migration.production.put(TO + NAME, THEIRS))):
        copy_again(site, CHANGED, again=3)
    assert outcomes(site.object_batches()) == {"conflict": 1}
    site.check_arrived(THEIRS)


@pytest.mark.soak
def test_a_copy_that_is_deleted_right_before_the_completion_is_made_anew(site: Site) -> None:
    with site.log.telling(when_completed(lambda: site.migration.production.delete(TO + NAME))):
        copy_again(site, CHANGED, again=3)
    assert outcomes(site.object_batches()) == {"migrated": 1}
    site.check_arrived(CHANGED)


@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (412, "PreconditionFailed")])
def test_a_server_that_refuses_to_pin_a_completion_is_asked_without(site: Site, status: int, code: str) -> None:
    """Or compares it wrongly: the object of that ETag stands there."""
    with site.log.refusing(lambda seen: is_completion(seen) and "if-match" in seen.headers, status, code):
        copy_again(site, CHANGED)
    site.check_arrived(CHANGED)
    assert site.sent() == Counter([1, 8])


@pytest.mark.parametrize("server", [Deviations(if_match=frozenset()), Deviations(md5_of_parts=False)])
def test_servers_that_heed_less_get_the_second_pass_as_well(make_migration: MakeMigration, server: Deviations) -> None:
    with site_on_fake(make_migration, server, replace="own", then=[]) as site:
        copy_first(site)
        copy_again(site, CHANGED)
        site.check_arrived(CHANGED)


INTERNAL = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"


@pytest.mark.parametrize(
    ("reaches_server", "again"),
    [(True, True), (True, False), (False, False)],
    ids=["completed, again", "completed", "not completed"],
)
@pytest.mark.parametrize("body", [INTERNAL, b""], ids=["an error", "no answer"])
def test_a_completion_without_a_result_is_looked_after(
    site: Site, body: bytes, reaches_server: bool, again: bool
) -> None:
    """A 200 with an error in it, or a broken connection; the server may have put the object together."""
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body if body else b""
    matches = is_completion if again else first(is_completion)
    with site.log.answering(matches, answer, reaches_server=reaches_server):
        copy_again(site, CHANGED, again=3)
    assert outcomes(site.object_batches()) == {"migrated": 1}
    site.check_arrived(CHANGED)
    assert site.begun() == 1


def copies_part(*numbers: int) -> Callable[[LoggedRequest], bool]:
    return lambda seen: sends_part(*numbers)(seen) and "x-amz-copy-source" in seen.headers


STEPS = {"begin": begins, "send": sends_part(8), "copy": copies_part(5), "complete": is_completion}


@pytest.mark.by_day("complete-answer")
@pytest.mark.parametrize(
    ("step", "where"),
    [
        *[pytest.param(step, "request", marks=pytest.mark.soak) for step in ("begin", "send", "copy")],
        *[pytest.param(step, "answer", marks=pytest.mark.soak) for step in ("begin", "send")],
        *[("copy", "answer"), ("complete", "request"), ("complete", "answer")],
    ],
)
def test_a_worker_killed_at_any_step_of_a_second_pass_costs_no_part(
    site: Site, step: str, where: Literal["request", "answer"]
) -> None:
    copy_again(site, CHANGED, works=False)
    under_way = {"send": {8}, "copy": {5}}.get(step, set[int]())

    def ready() -> bool:
        return step == "begin" or site.recorded() == ALL - under_way

    kill_when(site, STEPS[step], ready, where)
    stands = {CHANGED} if (step, where) == ("complete", "answer") else {BODY}
    late = {CHANGED} if (step, where) == ("complete", "request") else set[bytes]()  # it was on its way
    assert site.migration.production.read(TO + NAME) in stands | late
    go_on(site)
    assert (site.sent() + site.copied()) - Counter(ALL) == Counter(under_way)
    assert site.begun() == (2 if step == "begin" else 1)
    assert site.migration.production.read(TO + NAME) == CHANGED
    assert site.migration.execute("select * from rowferry.upload") == []
    assert len(site.migration.production.open_uploads()) == (step == "begin"), "more than the one without a record"
    copy_again(site, BODY)
    assert site.sent() == Counter([1, 8]), "the second copy is not remembered"


def test_a_copy_that_others_replace_meanwhile_is_no_source(make_migration: MakeMigration) -> None:
    """At a server that does not heed x-amz-copy-source-if-match; what they write has the same size."""
    theirs = change_bytes(*(number * PART_BYTES + 5 for number in range(PARTS)))(BODY)
    with site_on_fake(make_migration, Deviations(source_if_match=False), replace="own", then=[]) as site:
        copy_first(site)
        is_due = first(copies_part(*ALL))
        with site.log.telling(lambda seen: is_due(seen) and site.migration.production.put(TO + NAME, theirs)):
            copy_again(site, CHANGED, again=3)
        assert outcomes(site.object_batches()) == {"conflict": 1}
        site.check_arrived(theirs)


def refuse(status: int, code: str) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>"
    return f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


OTHER = f"<CopyPartResult><ETag>&quot;{'0' * 32}&quot;</ETag></CopyPartResult>"

ANSWERS = {
    "an empty part": b'HTTP/1.1 200 OK\r\nETag: "d41d8cd98f00b204e9800998ecf8427e"\r\nContent-Length: 0\r\n\r\n',
    "fails": b"HTTP/1.1 500 Internal\r\nContent-Length: 0\r\n\r\n",
    "not found": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "not allowed": b"HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\n\r\n",
    "not implemented": refuse(501, "NotImplemented"),
    "denied": refuse(403, "AccessDenied"),
    "invalid": refuse(400, "InvalidRequest"),
    "other bytes": f"HTTP/1.1 200 OK\r\nContent-Length: {len(OTHER)}\r\n\r\n{OTHER}".encode(),
}


@pytest.mark.by_day("not allowed", "an empty part", "fails", "not implemented", "denied", "other bytes")
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_server_that_knows_no_copies_of_parts_gets_all_of_them(site: Site, answer: bytes) -> None:
    """Nor is one believed that says, by the ETag of the part, that it has copied other bytes."""
    with site.log.answering(copies_part(*ALL), answer):
        copy_again(site, CHANGED, again=3)
    assert site.sent() == Counter(ALL)
    site.check_arrived(CHANGED)


def test_a_versioned_production_bucket_keeps_the_earlier_copy(
    make_migration: MakeMigration, moto_buckets: Buckets
) -> None:
    with site_on(make_migration, moto_buckets, replace="own", then=[]) as site:
        production = site.migration.production
        production.client.put_bucket_versioning(Bucket=production.bucket, VersioningConfiguration={"Status": "Enabled"})
        changed = change_bytes(0)(real_body())
        copy_first(site, real_body())
        copy_again(site, changed)
        assert (site.sent(), site.copied()) == (Counter([1]), Counter([2, 3]))
        site.check_arrived(changed)
        found = production.client.list_object_versions(Bucket=production.bucket, Prefix=TO)
        for one in found["Versions"]:  # so that the bucket can be removed
            production.client.delete_object(Bucket=production.bucket, Key=one["Key"], VersionId=one["VersionId"])
        assert sorted(one["IsLatest"] for one in found["Versions"]) == [False, True]
        assert "DeleteMarkers" not in found
