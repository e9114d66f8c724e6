"""Tags arrive, whatever the servers announce, drop or cannot take in a header; or the entry says that they do not."""

from typing import Any

import pytest

from journeys import NEW, OLD, move, shelves_with
from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectRejected, ServerFault
from rowferry.s3.operations import Request
from rowferry.s3.responses import Answer
from rowferry_worker.objects.conditional_writes import Condition
from rowferry_worker.objects.copy import Way
from rowferry_worker.objects.tags import ASKED_FIRST
from rowferry_worker.objects.transfer import Carrier, ServerCopy, StreamCopy
from shelves import Shelves, Stored, header, refuse

TAGS = {"kind": "a b", "owner": "me", "empty": ""}
LONG = {f"tag-{number}": "ä€" * 128 for number in range(10)}
CARRIERS = {
    "server": (ServerCopy("old"), "CopyObject"),
    "stream": (StreamCopy(), "PutObject"),
    "server by parts": (ServerCopy("old", 4), "CreateMultipartUpload"),
    "stream by parts": (StreamCopy(threshold_bytes=4), "CreateMultipartUpload"),
}


@pytest.fixture(params=CARRIERS)
def travel(request: pytest.FixtureRequest) -> tuple[Carrier, str]:
    """A carrier, and its operation that is to bring the tags along."""
    return CARRIERS[request.param]


def tagged_shelves(tags: dict[str, str] = TAGS, **more: Any) -> Shelves:
    shelves = shelves_with(b"0123456789", **more)
    shelves.legacy[OLD].tags = dict(tags)
    return shelves


def new_way(carrier: Carrier) -> Way:
    """Return a way of which the worker knows nothing but that conditions are ignored."""
    condition = Condition("new")
    condition._beliefs[carrier.operation] = "ignored"
    return Way(carrier, condition)


def size_limit(carrier: Carrier) -> int:
    return getattr(carrier, "_threshold_bytes", None) or 10**9


def tagging_requests(shelves: Shelves) -> list[str]:
    return [operation for operation in shelves.operations if "Tagging" in operation]


@pytest.mark.parametrize("tags", [TAGS, LONG], ids=["few", "long"])
@pytest.mark.parametrize("announces", [True, False], ids=["announced", "unannounced"])
@pytest.mark.parametrize("drops", [True, False], ids=["dropped", "kept"])
def test_every_object_arrives_with_its_tags(
    drops: bool, announces: bool, tags: dict[str, str], travel: tuple[Carrier, str]
) -> None:
    """Ceph RGW drops those of uploads; gofakes3 and S3Mock announce none."""
    carrier, operation = travel
    way = new_way(carrier)
    for _ in range(3):
        shelves = tagged_shelves(
            tags, announces=announces, drops_tags=[operation] if drops else [], too_large_bytes=size_limit(carrier)
        )
        assert move(shelves, way).outcome is Outcome.MIGRATED
        assert shelves.production[NEW].tags == tags
        headers = [header(request, "x-amz-tagging") or "" for request in shelves.seen]
        assert max(map(len, headers)) < 4096


@pytest.mark.parametrize("tags", [TAGS, {}], ids=["tagged", "plain"])
@pytest.mark.parametrize("name", ["server", "stream"])
def test_where_servers_do_it_right_small_objects_soon_cost_nothing_more(name: str, tags: dict[str, str]) -> None:
    carrier, _ = CARRIERS[name]
    way = new_way(carrier)
    for _ in range(ASKED_FIRST + 1):
        move(tagged_shelves(tags), way)
    shelves = tagged_shelves(tags)
    move(shelves, way)
    reads = ["GetObjectTagging legacy"] if name == "stream" and tags else []
    assert tagging_requests(shelves) == reads


def test_a_server_that_turns_out_not_to_announce_tags_is_asked_for_those_of_every_object() -> None:
    way = new_way(StreamCopy())
    for number in range(ASKED_FIRST + 5):
        shelves = tagged_shelves({} if number == 3 else TAGS, announces=False)
        move(shelves, way)
        assert shelves.production[NEW].tags == shelves.legacy[OLD].tags


def test_a_count_without_its_tags_migrates_nothing() -> None:
    shelves = tagged_shelves()
    shelves.interfere = lambda request: (
        Answer(200, {}, b"<Tagging><TagSet></TagSet></Tagging>") if request.operation == "GetObjectTagging" else None
    )
    with pytest.raises(ServerFault, match="announces 3 tags and lists 0"):
        move(shelves, new_way(StreamCopy()))
    assert shelves.production == {}


def test_a_count_that_is_no_number_fails_its_object_alone() -> None:
    shelves = tagged_shelves({})
    shelves.legacy[OLD].headers["x-amz-tagging-count"] = "abc"
    with pytest.raises(ServerFault, match="'abc' tags"):
        move(shelves, new_way(StreamCopy()))


def test_a_server_that_keeps_no_tags_at_all_is_told_of_in_a_sentence(travel: tuple[Carrier, str]) -> None:
    carrier, operation = travel
    shelves = tagged_shelves(drops_tags=[operation], too_large_bytes=size_limit(carrier))
    shelves.interfere = lambda request: Answer(200) if request.operation == "PutObjectTagging" else None
    with pytest.raises(ObjectRejected, match="TagsLost: the production server keeps no tags of"):
        move(shelves, new_way(carrier))


@pytest.mark.parametrize(("status", "code"), [(501, "NotImplemented"), (403, "AccessDenied"), (404, "NoSuchTagSet")])
def test_a_legacy_server_without_tags_is_no_obstacle(status: int, code: str, travel: tuple[Carrier, str]) -> None:
    carrier, _ = travel
    way, shelves = new_way(carrier), tagged_shelves()
    for _ in range(2):
        shelves = tagged_shelves({}, too_large_bytes=size_limit(carrier))

        def interfere(request: Request) -> Answer | None:
            return refuse(status, code) if request.operation == "GetObjectTagging" else None

        shelves.interfere = interfere
        assert move(shelves, way).outcome is Outcome.MIGRATED
    if code != "NoSuchTagSet":
        assert tagging_requests(shelves) == [], "it is not asked again"


def test_a_space_in_a_tag_is_none_that_a_server_can_take_for_a_plus() -> None:
    shelves = tagged_shelves()
    move(shelves, new_way(StreamCopy()))
    (sent,) = [header(request, "x-amz-tagging") for request in shelves.seen if header(request, "x-amz-tagging")]
    assert sent == "kind=a%20b&owner=me&empty="


def test_tags_that_an_earlier_attempt_did_not_come_to_are_put_by_the_next() -> None:
    shelves, way = tagged_shelves(drops_tags=["PutObject"]), new_way(StreamCopy())
    shelves.interfere = lambda request: refuse(503, "SlowDown") if request.operation == "PutObjectTagging" else None
    with pytest.raises(ObjectError, match="SlowDown"):
        move(shelves, way)
    assert shelves.production[NEW].tags == {}
    shelves.interfere = lambda _: None
    assert move(shelves, new_way(StreamCopy())).outcome is Outcome.KEPT
    assert shelves.production[NEW].tags == TAGS


def test_an_identical_object_keeps_the_tags_that_it_has() -> None:
    for announces in (True, False):
        shelves = tagged_shelves(announces=announces)
        shelves.production[NEW] = Stored(b"0123456789", tags={"mine": "1"})
        assert move(shelves, new_way(ServerCopy("old"))).outcome is Outcome.KEPT
        assert shelves.production[NEW].tags == {"mine": "1"}


def test_metadata_that_does_not_fit_into_headers_is_not_lost_silently() -> None:
    shelves = tagged_shelves({})
    shelves.legacy[OLD].headers["x-amz-missing-meta"] = "2"
    with pytest.raises(ObjectRejected, match="MissingMetadata"):
        move(shelves, new_way(StreamCopy()))


# Servers that know no tags take `?tagging` for the object itself


@pytest.mark.parametrize("tags", [TAGS, LONG], ids=["few", "long"])
@pytest.mark.parametrize("body", [b"0123456789", b""], ids=["some bytes", "empty"])
def test_a_server_that_knows_no_tags_never_has_an_object_replaced_by_them(body: bytes, tags: dict[str, str]) -> None:
    shelves = tagged_shelves(tags, announces=False)
    shelves.legacy[OLD] = Stored(body, tags=tags)

    def interfere(request: Request) -> Answer | None:
        if request.side == "legacy":
            return None
        if request.operation == "GetObjectTagging":
            return Answer(200, {"content-length": str(len(body))}, shelves.production[request.key].body)
        if request.operation == "PutObjectTagging":
            shelves.production[request.key] = Stored(request.body)
            return Answer(200)
        return None

    shelves.interfere = interfere
    for _ in range(2):
        with pytest.raises(ObjectRejected, match="TagsLost"):
            move(shelves, new_way(StreamCopy()))
        assert shelves.production[NEW].body == body


def test_a_legacy_server_that_knows_no_tags_is_found_out() -> None:
    way = new_way(StreamCopy())
    shelves = tagged_shelves({})
    shelves.interfere = lambda request: (
        Answer(200, {}, b"0123456789") if request.operation == "GetObjectTagging" else None
    )
    assert move(shelves, way).outcome is Outcome.MIGRATED


@pytest.mark.parametrize("name", ["server by parts", "stream by parts"])
def test_an_empty_answer_of_a_server_that_counts_tags_means_none(name: str) -> None:
    """Ceph RGW 16 answers so for an object whose tags an upload has lost."""
    carrier, operation = CARRIERS[name]
    shelves = tagged_shelves(drops_tags=[operation], too_large_bytes=size_limit(carrier))

    def interfere(request: Request) -> Answer | None:
        stored = shelves.production.get(request.key)
        if request.side == "legacy" or stored is None or stored.tags:
            return None
        if request.operation == "HeadObject":
            stored.headers["x-amz-tagging-count"] = "0"
        if request.operation == "PutObjectTagging":
            del stored.headers["x-amz-tagging-count"]
        return Answer(200) if request.operation == "GetObjectTagging" else None

    shelves.interfere = interfere
    assert move(shelves, new_way(carrier)).outcome is Outcome.MIGRATED
    assert shelves.production[NEW].tags == TAGS
