"""Writes that take long: what the application puts there meanwhile is not overwritten, with or without conditions."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rowferry.batch import Outcome
from rowferry.errors import ServerFault
from rowferry.http import event_loop
from rowferry.s3.responses import Response
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import compute_md5 as md5
from rowferry_worker.copying.copy import copy_object
from rowferry_worker.objects import intents
from support.processes.processes import wait_for
from support.s3.copies import NEW, OLD
from support.s3.fake_buckets import HELD
from support.s3.pipes import SECONDS, Pipe, corrupt, flip, keep

BODY = bytes(range(256)) * 8192
"""2 MiB: it is piped."""
THEIRS = b"the application's"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    """Two buckets, between which any write takes long enough for another look."""
    monkeypatch.setattr(intents, "CHECK_AGAIN_AFTER", timedelta(0))
    pipe = Pipe(BODY)
    with pipe.serving():
        pipe.support.confirms_digests = True
        yield pipe
        wait_for(lambda: not pipe.clients["legacy"]._pool._streaming)
        pipe.assert_nothing_open()


def write_meanwhile(pipe: Pipe, *, puts: int = 1) -> None:
    """Have the application write its object when the first half of our last PUT, of so many, has been sent."""

    def send_half(pipe: Pipe, request: Request) -> Response:
        del request
        pipe.send_first(len(BODY) // 2)
        reading = pipe.connection

        def put_theirs(request: Request) -> None:
            if request.method == "PUT" and pipe.methods("production").count("PUT") == puts:
                pipe.put("production", NEW, THEIRS)
                reading.write(BODY[len(BODY) // 2 :])
                pipe.interfere_early = lambda _: None

        pipe.interfere_early = put_theirs
        return HELD

    pipe.deviations["legacy"] += [send_half]


@pytest.mark.parametrize("knows", [True, False, None])
@pytest.mark.parametrize("trusts", [True, None])
def test_an_object_that_appears_during_a_slow_write_is_not_overwritten(
    pipe: Pipe, knows: bool | None, trusts: bool | None
) -> None:
    """A server may not know the condition, or heed it before it reads the body only."""
    pipe.deviate(looks_early=True)
    pipe.support.confirms_digests = trusts
    pipe.support._supported.clear()
    if knows is not None:
        pipe.support._supported["PutObject"] = knows
    write_meanwhile(pipe)
    assert pipe.copy().outcome is Outcome.CONFLICT
    assert pipe.written == THEIRS
    wait_for(lambda: "PUT cut off" in pipe.methods("production"))
    assert not [line for line in pipe.recorded if line.startswith("PutObject")], "the server has refused nothing"


def test_who_may_overwrite_does_not_look_again(pipe: Pipe) -> None:
    pipe.options = type(pipe.options)(pipe.options.method, pipe.support, "overwrite", pipe.options.properties)
    pipe.put("production", NEW, THEIRS)
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == BODY
    wait_for(lambda: pipe.methods("production") == ["PUT cut off", "HEAD", "PUT"])


def test_a_quick_write_is_not_looked_after(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intents, "CHECK_AGAIN_AFTER", SECONDS)
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.methods("production") == ["PUT"]


def test_looks_find_a_connection_where_all_of_them_write(pipe: Pipe) -> None:
    pipe.support._supported["PutObject"] = False

    async def copy_all() -> list[object]:
        copies = (copy_object(pipe.requests(), pipe.options, OLD, f"avatar/{n}.png") for n in range(40))
        return await asyncio.gather(*copies, return_exceptions=True)

    outcomes = event_loop.run(copy_all(), SECONDS)
    assert [result for result in outcomes if isinstance(result, Exception)] == []
    assert {found.body for found in pipe.production.values()} == {BODY}
    assert len(pipe.production) == 40


@pytest.mark.parametrize("knows", [True, False])
def test_a_damaged_object_in_whose_place_another_comes_during_its_repair_is_left_alone(pipe: Pipe, knows: bool) -> None:
    """Between the look and the end of the write: the second look sees it, and servers that know If-Match do."""
    pipe.deviate(checks_md5=False)
    pipe.support._supported["PutObject"] = knows
    pipe.deviations["production"] += [corrupt]
    pipe.deviations["legacy"] += [keep]
    write_meanwhile(pipe, puts=2)
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pipe.copy()
    assert pipe.written == THEIRS
    assert pipe.copy().outcome is Outcome.CONFLICT


def test_a_repair_is_bound_to_the_damaged_object_where_the_server_knows_conditions(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_first(pipe: Pipe, request: Request) -> None:
        pipe.put("production", request.key, THEIRS)

    monkeypatch.setattr(intents, "CHECK_AGAIN_AFTER", SECONDS)
    pipe.deviate(checks_md5=False)
    pipe.deviations["production"] += [corrupt, write_first]
    assert pipe.copy().outcome is Outcome.CONFLICT
    assert pipe.written == THEIRS


@pytest.mark.parametrize("is_before_the_look", [True, False])
def test_a_damaged_object_that_was_removed_meanwhile_is_no_missing_legacy_object(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, is_before_the_look: bool
) -> None:
    def remove(pipe: Pipe, request: Request) -> Response | None:
        pipe.production.clear()
        if request.header(b"if-match"):
            return None
        return Response(200, {"etag": f'"{md5(flip(request.body))}"'})

    monkeypatch.setattr(intents, "CHECK_AGAIN_AFTER", SECONDS)
    pipe.deviate(checks_md5=False)
    pipe.deviations["production"] += [remove] if is_before_the_look else [corrupt, remove]
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pipe.copy()
    assert pipe.copy().outcome is Outcome.MIGRATED
