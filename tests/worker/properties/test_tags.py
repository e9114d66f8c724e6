"""Tags arrive, whatever the servers announce, drop or cannot take in a header; or the entry says that they do not."""

from typing import Any

import pytest

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectRejected, ServerFault
from rowferry.plan import TagRule
from rowferry.reports.facts import COPY_KEEPS_TAGS, COPY_LEAVES_TAGS_OUT
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.copying.copy import CopyOptions
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.copying.transfer import CopyMethod
from rowferry_worker.objects.conditional_writes import ConditionalWriteSupport
from rowferry_worker.properties.settle import Properties
from rowferry_worker.properties.tags import ASKED_FIRST, Tagging
from support.s3.copies import NEW, OLD, copy_once, fake_with
from support.s3.deviations import Deviations
from support.s3.fake_buckets import FakeBuckets, changed, headers_of, refuse, stored

TAGS = {"kind": "a b", "owner": "me", "empty": ""}
LONG = {f"tag-{number}": "ä€" * 128 for number in range(10)}
KEEPING = Deviations().keeps_tags
"""The operations that keep tags, as Amazon S3's do."""
METHODS = {
    "server": (ServerCopy("legacy"), "CopyObject"),
    "stream": (StreamCopy(), "PutObject"),
    "server by parts": (ServerCopy("legacy", 4), "CreateMultipartUpload"),
    "stream by parts": (StreamCopy(threshold_bytes=4), "CreateMultipartUpload"),
}


@pytest.fixture(params=METHODS)
def way(request: pytest.FixtureRequest) -> tuple[CopyMethod, str]:
    """A method, and its operation that is to bring the tags along."""
    return METHODS[request.param]


def tagged_fake(tags: dict[str, str] = TAGS, **more: Any) -> FakeBuckets:
    fake = fake_with(b"0123456789", **more)
    fake.legacy[OLD] = changed(fake.legacy[OLD], tags=dict(tags))
    return fake


def new_options(method: CopyMethod, tagging: Tagging | None = None) -> CopyOptions:
    """Return options of which the worker knows nothing but that conditions are ignored."""
    support = ConditionalWriteSupport("new", {method.operation: False})
    return CopyOptions(method, support, properties=Properties(tagging=tagging or Tagging()))


def tagging_requests(fake: FakeBuckets) -> list[str]:
    return [operation for operation in fake.operations if "Tagging" in operation]


@pytest.mark.parametrize("tags", [TAGS, LONG], ids=["few", "long"])
@pytest.mark.parametrize("announces", [True, False], ids=["announced", "unannounced"])
@pytest.mark.parametrize("drops", [True, False], ids=["dropped", "kept"])
def test_every_object_arrives_with_its_tags(
    drops: bool, announces: bool, tags: dict[str, str], way: tuple[CopyMethod, str]
) -> None:
    """Ceph RGW drops those of uploads; gofakes3 and S3Mock announce none."""
    method, operation = way
    options = new_options(method)
    for _ in range(3):
        fake = tagged_fake(tags, tagging_count=announces, keeps_tags=KEEPING - {operation} if drops else KEEPING)
        assert copy_once(fake, options).outcome is Outcome.MIGRATED
        assert fake.production[NEW].tags == tags
        headers = [request.header(b"x-amz-tagging") or "" for request in fake.seen]
        assert max(map(len, headers)) < 4096


def test_uploads_go_on_where_only_copies_bring_unwanted_tags_along() -> None:
    """A server that heeds neither CopyObject's directive nor a removal gives an upload no tags of its own accord."""
    tagging = Tagging("none")
    fakes = [tagged_fake(TAGS, tagging_directive=False, removes_tags=False) for _ in range(2)]
    for fake, name in zip(fakes, ("server", "server by parts"), strict=True):
        method, operation = METHODS[name]
        options = new_options(method, tagging)
        if operation == "CopyObject":
            with pytest.raises(ObjectRejected, match="tags"):
                copy_once(fake, options)
        else:
            assert copy_once(fake, options).outcome is Outcome.MIGRATED
            assert fake.production[NEW].tags == {}


@pytest.mark.parametrize("name", ["server", "stream"])
def test_where_servers_do_it_right_small_objects_soon_cost_nothing_more(name: str) -> None:
    method, _ = METHODS[name]
    options = new_options(method)
    copy_once(tagged_fake(TAGS), options)
    fakes = [tagged_fake(tags) for tags in (TAGS, {})]
    for fake in fakes:
        copy_once(fake, options)
    reads = ["GetObjectTagging legacy"] if name == "stream" else []
    assert [tagging_requests(fake) for fake in fakes] == [reads, []]


@pytest.mark.parametrize("drops", [True, False], ids=["dropped", "kept"])
@pytest.mark.parametrize("name", ["server", "stream"])
def test_no_object_without_tags_stands_for_one_that_has_some(name: str, drops: bool) -> None:
    """However many came before it, and whatever comes with it."""
    method, operation = METHODS[name]
    options = new_options(method)
    keeps = KEEPING - {operation} if drops else KEEPING
    for number in range(45):
        fake = tagged_fake(TAGS if number == 40 else {}, tagging_count=False, keeps_tags=keeps)
        copy_once(fake, options)
        assert fake.production[NEW].tags == fake.legacy[OLD].tags, number


KEEPS: dict[str, bool] = {COPY_KEEPS_TAGS: True, COPY_LEAVES_TAGS_OUT: True}


@pytest.mark.parametrize(
    ("rule", "facts", "requests", "tags"),
    [("copy", KEEPS, 0, TAGS), ("none", KEEPS, 0, {}), ("copy", {COPY_KEEPS_TAGS: False}, 2, TAGS)],
    ids=["kept", "left out", "dropped"],
)
def test_what_a_check_has_seen_of_copies_is_believed_from_the_first_on(
    rule: TagRule, facts: dict[str, bool], requests: int, tags: dict[str, str]
) -> None:
    method, operation = METHODS["server"]
    fake = tagged_fake(keeps_tags=KEEPING if facts[COPY_KEEPS_TAGS] else KEEPING - {operation})
    copy_once(fake, new_options(method, Tagging(rule, facts)))
    assert len(tagging_requests(fake)) == requests
    assert fake.production[NEW].tags == tags


def test_a_server_whose_get_announces_tags_is_not_believed_to_do_so_by_head() -> None:
    properties = Properties()
    for name in ("stream", "stream by parts"):
        fake, support = tagged_fake(head_tagging_count=False), ConditionalWriteSupport("new", {})
        assert (
            copy_once(fake, CopyOptions(METHODS[name][0], support, properties=properties)).outcome is Outcome.MIGRATED
        )
        assert fake.production[NEW].tags == TAGS


def test_amazon_s3_announces_tags_so_that_few_objects_are_asked() -> None:
    options = new_options(StreamCopy())
    asked = 0
    for _ in range(ASKED_FIRST + 5):
        fake = tagged_fake({})
        fake.legacy[OLD] = changed(fake.legacy[OLD], headers={"server": "AmazonS3"})
        copy_once(fake, options)
        asked += len(tagging_requests(fake))
    assert asked == ASKED_FIRST


def test_a_server_that_turns_out_not_to_announce_tags_is_asked_for_those_of_every_object() -> None:
    options = new_options(StreamCopy())
    for number in range(ASKED_FIRST + 5):
        fake = tagged_fake({} if number == 3 else TAGS, tagging_count=False)
        copy_once(fake, options)
        assert fake.production[NEW].tags == fake.legacy[OLD].tags


NO_LIST = Response(200, {}, b"<Tagging><TagSet></TagSet></Tagging>")
UNCLEAR: dict[str, tuple[dict[str, str], dict[str, str], type[ObjectError], str]] = {
    "a count without its tags": (TAGS, {}, ServerFault, "announces 3 tags and lists 0"),
    "a count that is no number": ({}, {"x-amz-tagging-count": "abc"}, ServerFault, "'abc' tags"),
    "metadata that fit into no header": ({}, {"x-amz-missing-meta": "2"}, ObjectRejected, "MissingMetadata"),
}
"""Tags of an object, headers that it has besides, and the error that its copy ends with."""


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_is_announced_and_not_told_is_not_lost_silently(case: str) -> None:
    tags, headers, error, words = UNCLEAR[case]
    fake = tagged_fake(tags)
    fake.legacy[OLD] = changed(fake.legacy[OLD], headers=headers) if headers else fake.legacy[OLD]
    fake.interfere = lambda request: NO_LIST if tags and request.operation == "GetObjectTagging" else None
    with pytest.raises(error, match=words):
        copy_once(fake, new_options(StreamCopy()))
    assert fake.production == {}


def test_a_server_that_keeps_no_tags_at_all_is_told_of_in_a_sentence(way: tuple[CopyMethod, str]) -> None:
    method, operation = way
    fake = tagged_fake(keeps_tags=KEEPING - {operation})
    fake.interfere = lambda request: Response(200) if request.operation == "PutObjectTagging" else None
    with pytest.raises(ObjectRejected, match="TagsLost: the production server keeps no tags of"):
        copy_once(fake, new_options(method))


UNTAGGED: dict[str, tuple[Response, bool]] = {
    "not implemented": (refuse(501, "NotImplemented"), False),
    "denied": (refuse(403, "AccessDenied"), False),
    "no such tags": (refuse(404, "NoSuchTagSet"), True),
    "the object itself": (Response(200, {}, b"0123456789"), True),
    "an invalid argument": (refuse(400, "InvalidArgument"), True),
}
"""What a legacy server without tags answers, and whether it may be asked again."""


@pytest.mark.parametrize("case", UNTAGGED)
def test_a_legacy_server_without_tags_is_no_obstacle(case: str, way: tuple[CopyMethod, str]) -> None:
    answer, may_ask = UNTAGGED[case]
    options = new_options(way[0])
    for again in (False, True):
        fake = tagged_fake({})
        fake.interfere = lambda request: answer if request.operation == "GetObjectTagging" else None
        assert copy_once(fake, options).outcome is Outcome.MIGRATED
        assert may_ask or not again or tagging_requests(fake) == []


def test_tags_that_an_earlier_attempt_did_not_come_to_are_put_by_the_next() -> None:
    fake, options = tagged_fake(keeps_tags=KEEPING - {"PutObject"}), new_options(StreamCopy())
    fake.interfere = lambda request: refuse(503, "SlowDown") if request.operation == "PutObjectTagging" else None
    with pytest.raises(ObjectError, match="SlowDown"):
        copy_once(fake, options)
    assert fake.production[NEW].tags == {}
    fake.interfere = lambda _: None
    assert copy_once(fake, new_options(StreamCopy())).outcome is Outcome.KEPT
    assert fake.production[NEW].tags == TAGS


def test_an_identical_object_keeps_the_tags_that_it_has() -> None:
    for announces in (True, False):
        fake = tagged_fake(tagging_count=announces)
        fake.production[NEW] = stored(b"0123456789", tags={"mine": "1"})
        assert copy_once(fake, new_options(ServerCopy("legacy"))).outcome is Outcome.KEPT
        assert fake.production[NEW].tags == {"mine": "1"}


# Servers that know no tags take `?tagging` for the object itself


@pytest.mark.parametrize("tags", [TAGS, LONG], ids=["few", "long"])
@pytest.mark.parametrize("body", [b"0123456789", b""], ids=["some bytes", "empty"])
def test_a_server_that_knows_no_tags_never_has_an_object_replaced_by_them(body: bytes, tags: dict[str, str]) -> None:
    fake = tagged_fake(tags, tagging_count=False)
    fake.legacy[OLD] = stored(body, tags=tags)

    def interfere(request: Request) -> Response | None:
        if request.bucket == "legacy":
            return None
        if request.operation == "GetObjectTagging":
            return Response(200, {}, fake.production[request.key].body)
        if request.operation == "PutObjectTagging":
            fake.production[request.key] = stored(request.body)
            return Response(200)
        return None

    fake.interfere = interfere
    for _ in range(2):
        with pytest.raises(ObjectRejected, match="TagsLost"):
            copy_once(fake, new_options(StreamCopy()))
        assert fake.production[NEW].body == body


@pytest.mark.parametrize("name", ["server by parts", "stream by parts"])
def test_an_empty_answer_of_a_server_that_counts_tags_means_none(name: str) -> None:
    """Ceph RGW 16 answers so for an object whose tags an upload has lost."""
    method, operation = METHODS[name]
    fake = tagged_fake(keeps_tags=KEEPING - {operation})

    def interfere(request: Request) -> Response | None:
        found = fake.production.get(request.key)
        if request.bucket == "legacy" or found is None or found.tags:
            return None
        if request.operation == "HeadObject":
            return Response(200, {**headers_of(found), "x-amz-tagging-count": "0"})
        return Response(200) if request.operation == "GetObjectTagging" else None

    fake.interfere = interfere
    assert copy_once(fake, new_options(method)).outcome is Outcome.MIGRATED
    assert fake.production[NEW].tags == TAGS
