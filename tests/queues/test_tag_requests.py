"""The requests of one object's tags: read, merge, write what changes; a tag of another client is not lost in vain."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, ObjectNotFound, ObjectRejected, ServerFault, Throttled
from rowferry.plan import SideName
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_queues.tag import perform
from rowferry_queues.tag.perform import tag_object
from rowferry_queues.tag.spec import TagConflict
from rowferry_worker.objects.requests import ObjectRequests
from support.s3.fake_buckets import FakeBuckets, changed, refuse, stored

KEY = "cold/1.png"
COLD = {"tier": "cold"}
GET, PUT = "GetObjectTagging production", "PutObjectTagging production"


def fake_with(tags: Mapping[str, str]) -> FakeBuckets:
    return FakeBuckets(production={KEY: stored(b"body", tags=dict(tags))})


def tag(fake: FakeBuckets, wanted: Mapping[str, str] = COLD) -> Outcome:
    """Tag the object at a server that was seen to keep tags."""
    perform._keeping.add(fake)
    return fake.run(tag_object(fake.s3, fake, KEY, wanted)).outcome


def tags_of(fake: FakeBuckets) -> Mapping[str, str]:
    return fake.production[KEY].tags


def give(fake: FakeBuckets, name: str, value: str) -> None:
    """Have the application set a tag."""
    fake.production[KEY] = changed(fake.production[KEY], tags={**tags_of(fake), name: value})


ODD = {"a&<b>": "x \"y\" 'z'", "line": "1\r2\n3\t4", " blank ": "  ", "café": "日本\U0001f600", "empty": ""}
"""As lenient servers take them: a carriage return must not become the end of a line."""


def test_other_tags_stay_to_the_byte_and_nothing_is_written_where_nothing_changes() -> None:
    for found, outcome, operations in (
        ({"owner": "me", "tier": "hot"}, Outcome.MIGRATED, [GET, PUT]),
        (ODD, Outcome.MIGRATED, [GET, PUT]),
        ({"owner": "me", "tier": "cold"}, Outcome.KEPT, [GET]),
    ):
        fake = fake_with(found)
        assert tag(fake) is outcome
        assert tags_of(fake) == {**found, "tier": "cold"}
        assert fake.operations == operations


def test_a_delete_marker_is_no_object() -> None:
    fake = fake_with({})

    def interfere(_request: Request) -> Response:
        return refuse(405, "MethodNotAllowed", x_amz_delete_marker="true")

    fake.interfere = interfere
    with pytest.raises(ObjectNotFound, match="delete marker"):
        tag(fake)


def test_a_retry_of_the_write_reads_anew() -> None:
    """An application sets a tag of its own while the first try fails: both are there in the end."""
    fake = fake_with({})

    def interfere(request: Request) -> Response | None:
        if request.operation == "PutObjectTagging" and fake.operations.count(PUT) == 1:
            give(fake, "owner", "me")
            return refuse(503, "SlowDown")
        return None

    fake.interfere = interfere
    assert tag(fake) is Outcome.MIGRATED
    assert tags_of(fake) == {"owner": "me", "tier": "cold"}
    assert fake.operations == [GET, PUT, GET, PUT]


def test_a_write_whose_response_was_lost_counts_as_written() -> None:
    fake = fake_with({})

    def interfere(request: Request) -> Response | None:
        if request.operation == "PutObjectTagging":
            fake.carry_out(request)
            return refuse(500, "InternalError")
        return None

    fake.interfere = interfere
    assert tag(fake) is Outcome.MIGRATED
    assert fake.operations == [GET, PUT, GET]


def test_the_turn_of_the_write_is_waited_for_before_the_read() -> None:
    """Else a tag that is set while the write waits under a rate limit would be lost."""
    fake, waits = fake_with({}), {"PutObjectTagging": timedelta(seconds=0.01)}

    class Pace:
        def reserve(self, _side: SideName, operation: str) -> timedelta:
            if operation == "PutObjectTagging":
                give(fake, "owner", "me")  # while it waits
            return waits.get(operation, timedelta())

        def record(self, *_: object) -> None: ...

    perform._keeping.add(fake)
    s3 = ObjectRequests(fake.send, Pace())
    assert fake.run(tag_object(s3, fake, KEY, COLD)).outcome is Outcome.MIGRATED
    assert tags_of(fake) == {"owner": "me", "tier": "cold"}


def test_the_version_that_was_read_is_tagged_where_the_server_tells_it() -> None:
    fake = fake_with({"owner": "me"})
    asked: list[str] = []

    def interfere(request: Request) -> Response | None:
        if request.operation == "GetObjectTagging":
            body = fake.carry_out(request).partition(b"\r\n\r\n")[2]
            return Response(200, {"x-amz-version-id": "3/L4kqtJ+v"}, body)
        asked.append(request.query["versionId"])
        assert request.target.endswith("?tagging=&versionId=3%2FL4kqtJ%2Bv")
        return None

    fake.interfere = interfere
    assert tag(fake) is Outcome.MIGRATED
    assert asked == ["3/L4kqtJ+v"]


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (404, "NoSuchVersion", ServerFault),
        (409, "OperationAborted", ServerFault),
        (400, "InvalidTag", TagConflict),
        (403, "AccessDenied", AccessDenied),
        (404, "NoSuchKey", ObjectNotFound),
        (503, "SlowDown", Throttled),
        (400, "MalformedXML", ObjectRejected),
    ],
)
def test_a_refused_write_is_what_its_code_means(status: int, code: str, error: type[Exception]) -> None:
    fake = fake_with({})
    fake.interfere = lambda request: refuse(status, code) if request.operation == "PutObjectTagging" else None
    with pytest.raises(error) as caught:
        tag(fake)
    assert type(caught.value) is error


@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (405, "MethodNotAllowed"), (501, "")])
def test_a_server_without_tags_is_said_to_have_none(status: int, code: str) -> None:
    fake = fake_with({})
    fake.interfere = lambda _request: refuse(status, code)
    with pytest.raises(ObjectRejected, match="TagsUnknown: the production server knows no tags"):
        tag(fake)
    assert set(fake.operations) == {GET}


def test_a_server_that_lists_no_set_of_tags_has_none() -> None:
    fake = fake_with({})
    fake.interfere = lambda request: refuse(404, "NoSuchTagSet") if fake.operations == [GET] else None
    assert tag(fake) is Outcome.MIGRATED
    assert tags_of(fake) == COLD


def test_what_is_written_is_looked_at_until_it_was_found_once() -> None:
    fake = fake_with({})
    for _ in range(3):
        fake.production[KEY] = changed(fake.production[KEY], tags={})
        fake.run(tag_object(fake.s3, fake, KEY, COLD))
    assert fake.operations == [GET, PUT, GET, GET, PUT, GET, PUT]
