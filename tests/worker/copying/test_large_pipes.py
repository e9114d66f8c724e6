"""Large objects that are written while they are read: few at once, however many are begun."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from rowferry.batch import Outcome
from rowferry.errors import AccessDenied, NotFinished, NotStarted, ObjectDamaged, ObjectError, Throttled
from rowferry.http import connection, event_loop
from rowferry.plan import LegacySide, MigrationSettings, ObjectPrefix, OnConflict, Plan, ProductionSide
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_worker.copying import one_put, put_limit, stream_copy
from rowferry_worker.copying.copy import copy_object
from rowferry_worker.copying.stream_copy import StreamCopy
from rowferry_worker.migration import choose_method
from rowferry_worker.multipart.large import LargeObjects
from rowferry_worker.multipart.records import Recorded, UploadRecord, UploadRecords
from rowferry_worker.objects import link_trial
from rowferry_worker.objects.memory import BodyBudget, add_tls
from rowferry_worker.objects.pipe import PIPE_BYTES, ObjectPipe
from support.s3.copies import NEW, OLD
from support.s3.fake_buckets import LOST, refuse
from support.s3.pipes import SECONDS, Pipe, corrupt, cut_off

BODY = bytes(range(256)) * 4096
"""1 MiB, which is large here: its share is PIPE_BYTES, half of it."""
OBJECTS = 6


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    """A kind server, with an object to copy; objects are large from 64 KiB on, and there is room for two."""
    for module in (stream_copy, one_put):
        monkeypatch.setattr(module, "STREAM_PART_BYTES", 64 * 1024)
    pipe = Pipe(BODY)
    pipe.method._bodies = Watched(2 * PIPE_BYTES, expected_bytes=0)
    with pipe.serving():
        pipe.support.confirms_digests = True
        yield pipe
        pipe.assert_nothing_open()


class Watched(BodyBudget):
    """Notes the most that was held."""

    most = 0

    def __setattr__(self, name: str, value: int) -> None:
        super().__setattr__(name, value)
        if name == "held_bytes":
            super().__setattr__("most", max(self.most, value))


def copy_many(pipe: Pipe, *, is_full: bool = False) -> list[Outcome | BaseException]:
    """Copy the object to several keys at once, and return how each copy ended.

    `is_full`: there is no room until all of them wait for it.
    """

    async def copy_all() -> list[Outcome | BaseException]:
        hold = await pipe.method._bodies.hold(2 * PIPE_BYTES if is_full else 0)
        keys = [f"avatar/{number}.png" for number in range(OBJECTS)]
        copies = [asyncio.ensure_future(copy_object(pipe.requests(), pipe.options, OLD, key)) for key in keys]
        while is_full and len(pipe.method._bodies._waiting) < OBJECTS:
            await asyncio.sleep(0.01)
        hold.release()
        ends = await asyncio.gather(*copies, return_exceptions=True)
        return [end if isinstance(end, BaseException) else end.outcome for end in ends]

    return event_loop.run(copy_all(), SECONDS)


def most_held(pipe: Pipe) -> int:
    bodies = pipe.method._bodies
    assert isinstance(bodies, Watched)
    return bodies.most


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[ObjectPipe]:
    """The bodies that are hashed here, one after each piece."""
    found, note = list[ObjectPipe](), ObjectPipe.note

    def notice(self: ObjectPipe, piece: bytes) -> None:
        found.extend([self] * self._checks_read)
        note(self, piece)

    monkeypatch.setattr(ObjectPipe, "note", notice)
    return found


def test_of_many_large_objects_few_are_begun(pipe: Pipe) -> None:
    assert copy_many(pipe, is_full=True) == [Outcome.MIGRATED] * OBJECTS
    assert [found.body for found in pipe.production.values()] == [BODY] * OBJECTS
    assert most_held(pipe) == 2 * PIPE_BYTES
    assert len(pipe.methods("legacy")) == 2 * OBJECTS, "those for which there was no room ask again"
    pipe.production.clear()
    asked = len(pipe.methods("legacy"))
    assert copy_many(pipe) == [Outcome.MIGRATED] * OBJECTS
    assert len(pipe.methods("legacy")) == asked + OBJECTS, "from now on their size is expected"


def test_before_any_size_is_known_no_more_are_asked_for_than_there_is_room_for(pipe: Pipe) -> None:
    pipe.method._bodies = Watched(2 * PIPE_BYTES)
    assert copy_many(pipe) == [Outcome.MIGRATED] * OBJECTS
    assert most_held(pipe) == 2 * PIPE_BYTES
    assert pipe.methods("legacy") == ["GET"] * OBJECTS, "none had to give its share back"


@pytest.mark.parametrize(("tls_connections", "at_once"), [(0, 4), (2, 1)])
def test_fewer_objects_are_begun_over_tls(pipe: Pipe, *, tls_connections: int, at_once: int) -> None:
    pipe.method._bodies, pipe.method._tls_connections = Watched(4 * PIPE_BYTES), tls_connections
    assert copy_many(pipe) == [Outcome.MIGRATED] * OBJECTS
    assert most_held(pipe) == at_once * add_tls(PIPE_BYTES, tls_connections)


@pytest.mark.parametrize(
    ("legacy", "production", "connections"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:2", 0),
        ("HTTPS://127.0.0.1:1", "http://127.0.0.1:2", 1),
        ("https://127.0.0.1:1", None, 2),
    ],
)
def test_the_plan_says_over_how_many_tls_connections_an_object_passes(
    legacy: str, production: str | None, connections: int
) -> None:
    sides = LegacySide("old", endpoint_url=legacy), ProductionSide("new", endpoint_url=production)
    method = choose_method(Plan(MigrationSettings("m"), *sides, objects=(ObjectPrefix("avatar/"),)))
    assert isinstance(method, StreamCopy)
    assert method._tls_connections == connections


def test_smaller_objects_are_begun_at_once(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_copy, "STREAM_PART_BYTES", len(BODY))
    assert copy_many(pipe) == [Outcome.MIGRATED] * OBJECTS
    assert pipe.methods("legacy") == ["GET"] * OBJECTS


def test_what_has_no_room_until_the_time_budget_ends_is_left_to_the_next_attempt(pipe: Pipe) -> None:
    pipe.options = replace(pipe.options, large_objects=LargeObjects(deadline=time.monotonic()))
    assert [type(end) for end in copy_many(pipe, is_full=True)] == [NotStarted] * OBJECTS
    assert pipe.production == {}


def test_one_object_is_hashed_until_the_server_has_confirmed_its_digest(pipe: Pipe, hashed: list[ObjectPipe]) -> None:
    """The others that are begun meanwhile are judged by what the server tells of them."""
    pipe.support.confirms_digests = None
    pipe.method._bodies = Watched(OBJECTS * PIPE_BYTES)
    assert copy_many(pipe) == [Outcome.MIGRATED] * OBJECTS
    assert len(set(map(id, hashed))) == 1
    assert pipe.support.confirms_digests is True


def test_what_passes_unhashed_beside_the_first_is_no_proof(pipe: Pipe, hashed: list[ObjectPipe]) -> None:
    pipe.support.confirms_digests = None
    pipe.method._put_limit.is_hashing = True
    assert copy_many(pipe) == [Outcome.MIGRATED] * OBJECTS
    assert (hashed, pipe.support.confirms_digests) == ([], None)


def test_what_was_damaged_on_its_way_beside_the_first_is_written_again_hashed(
    pipe: Pipe, hashed: list[ObjectPipe]
) -> None:
    pipe.support.confirms_digests = None
    pipe.deviations["production"].append(corrupt)
    pipe.method._put_limit.is_hashing = True
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert (pipe.written, len(set(map(id, hashed)))) == (BODY, 1)
    assert pipe.support.confirms_digests is True, "by the second time"


@pytest.fixture
def tried(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """The object is so large that its PUT is tried."""
    monkeypatch.setattr(put_limit, "TRIED_BYTES", 128 * 1024)
    monkeypatch.setattr(put_limit, "ALWAYS_BYTES", 64 * 1024)
    monkeypatch.setattr(connection, "HEARD_BYTES", 64 * 1024)
    return pipe


BY_PARTS = ["CreateMultipartUpload ok", *["UploadPart ok"] * 16, "CompleteMultipartUpload ok"]


class Begun(UploadRecords):
    """An earlier attempt has begun each upload."""

    async def take(self, key: str, legacy_key: str) -> UploadRecord:
        return UploadRecord(self, key, Recorded("begun", "", legacy_key, "", len(BODY), 64 * 1024))


def written_by(pipe: Pipe) -> list[str]:
    """Return the writes that a copy has counted, reads left out."""
    return [word for word in pipe.recorded if not word.startswith(("Get", "Head"))]


def test_what_passes_soon_is_written_at_once(tried: Pipe) -> None:
    assert tried.copy().outcome is Outcome.MIGRATED
    assert (written_by(tried), tried.written) == (["PutObject ok"], BODY)


def test_a_slow_connection_is_given_up_and_its_object_goes_by_parts(
    tried: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_trial, "JUDGED_AFTER", 0.0)
    monkeypatch.setattr(link_trial, "REST_SECONDS", 0.0)
    assert tried.copy().outcome is Outcome.MIGRATED
    assert (written_by(tried), tried.written) == (BY_PARTS, BODY)
    assert tried.methods("production").count("PUT cut off") == 1
    del tried.production[NEW]
    assert tried.copy().outcome is Outcome.MIGRATED
    assert tried.methods("production").count("PUT cut off") == 1, "the next one goes by parts at once"


def refuse_large(pipe: Pipe, status: int, code: str = "") -> None:
    def refuse_put(request: Request) -> Response | None:
        length = int(request.header(b"content-length") or 0)
        is_large = request.operation == "PutObject" and length > 65536
        return refuse(status, code or f"HTTP {status}") if is_large else None

    pipe.interfere_early = refuse_put


@pytest.mark.parametrize("status", [403, 413])
def test_where_a_proxy_bounds_bodies_objects_go_by_parts(tried: Pipe, status: int) -> None:
    refuse_large(tried, status)
    assert tried.copy().outcome is Outcome.MIGRATED
    assert tried.written == BODY
    assert written_by(tried)[1:] == BY_PARTS, "the PUT is not sent again"


@pytest.mark.parametrize(
    ("status", "error", "recorded"),
    [
        (500, NotFinished, "ServerFault"),
        (502, NotFinished, "ServerFault"),
        (503, Throttled, "Throttled"),
        (None, NotFinished, "Unreachable"),
    ],
)
def test_where_a_large_put_is_given_up_or_breaks_off_the_next_attempt_sends_parts(
    tried: Pipe, status: int | None, error: type[ObjectError], recorded: str
) -> None:
    """The copy ends with an error that costs no attempt; `status`: of a proxy, or none."""
    if status is None:
        tried.deviations["production"].append(cut_off)
    else:
        refuse_large(tried, status)
    with pytest.raises(error) as raised:
        tried.copy()
    assert not raised.value.costs_attempt
    assert written_by(tried) == [f"PutObject {recorded}"]
    assert tried.copy().outcome is Outcome.MIGRATED
    assert (written_by(tried)[1:], tried.written) == (BY_PARTS, BODY)


def test_where_a_large_read_breaks_off_the_next_attempt_sends_parts(tried: Pipe) -> None:
    tried.deviations["legacy"].append(cut_off)
    with pytest.raises(NotFinished):
        tried.copy()
    assert tried.copy().outcome is Outcome.MIGRATED
    assert (written_by(tried), tried.written) == (BY_PARTS, BODY)


def test_a_large_put_that_has_arrived_without_an_answer_is_found(tried: Pipe) -> None:
    def write_and_break_off(pipe: Pipe, request: Request) -> Response:
        pipe.put("production", NEW, request.body)
        return LOST

    tried.deviations["production"].append(write_and_break_off)
    with pytest.raises(NotFinished):
        tried.copy()
    assert tried.copy().outcome is Outcome.KEPT
    assert (written_by(tried), tried.written) == (["PutObject Unreachable"], BODY)


@pytest.mark.parametrize("trusts", [None, False])
@pytest.mark.parametrize("on_conflict", ["fail", "keep"])
def test_a_large_object_that_was_written_damaged_is_replaced_by_the_next_attempt(
    tried: Pipe, on_conflict: OnConflict, trusts: bool | None
) -> None:
    tried.support.confirms_digests = trusts
    tried.options = replace(tried.options, on_conflict=on_conflict)
    tried.deviations["production"].append(corrupt)
    with pytest.raises(ObjectDamaged):
        tried.copy()
    assert tried.written != BODY
    assert tried.copy().outcome is Outcome.MIGRATED
    assert tried.written == BODY


def test_a_large_object_whose_etag_is_not_its_digest_is_sent_twice_and_fails(tried: Pipe) -> None:
    tried.deviations["legacy"] += [corrupt] * 9
    with pytest.raises(ObjectDamaged):
        tried.copy()
    assert tried.written is None
    assert len([word for word in tried.methods("production") if word.startswith("PUT")]) <= 2
    assert tried.method._put_limit.allows(len(BODY)), "others are not to suffer for it"


class Taken(UploadRecords):
    """Notes when a record of an upload is taken, and when it is given back."""

    steps: ClassVar[list[str]] = []

    async def take(self, key: str, legacy_key: str) -> UploadRecord | None:
        self.steps.append("take")
        return UploadRecord(self, key)

    async def tell(self, function: str, key: str, *arguments: Any) -> bool | None:
        self.steps.append(function)
        return True


def test_the_record_of_the_upload_is_held_until_what_is_in_doubt_is_written_anew(tried: Pipe) -> None:
    tried.options = replace(tried.options, large_objects=LargeObjects(Taken()))
    Taken.steps.clear()
    tried.deviations["production"].append(corrupt)
    assert tried.copy().outcome is Outcome.MIGRATED
    assert (Taken.steps, tried.written) == (["take", "take", "end_upload"], BODY)


@pytest.mark.parametrize(
    ("status", "steps"), [(200, ["take", "end_upload"]), (500, ["take", "end_upload"]), (413, ["take"])]
)
def test_the_record_of_the_upload_is_held_during_the_put(tried: Pipe, status: int, steps: list[str]) -> None:
    tried.options = replace(tried.options, large_objects=LargeObjects(Taken()))
    Taken.steps.clear()
    if status != 200:
        refuse_large(tried, status)
    with suppress(NotFinished):
        tried.copy()
    assert Taken.steps[: len(steps)] == steps
    assert len(Taken.steps) == 2 or status == 413, "which is held on until the parts are sent"


def test_a_large_put_that_is_refused_is_not_sent_by_parts(tried: Pipe) -> None:
    tried.deviations["production"].append(lambda *_: refuse(403, "AccessDenied"))
    with pytest.raises(AccessDenied):
        tried.copy()
    assert "CreateMultipartUpload ok" not in tried.recorded


def test_an_upload_that_was_begun_goes_on_by_parts(tried: Pipe) -> None:
    tried.options = replace(tried.options, large_objects=LargeObjects(Begun()))
    assert tried.copy().outcome is Outcome.MIGRATED
    assert written_by(tried)[-len(BY_PARTS) :] == BY_PARTS
    assert "PutObject ok" not in tried.recorded
