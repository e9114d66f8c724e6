"""Writes that take long: what the application puts there meanwhile is not overwritten, with or without conditions."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rowferry.batch import Outcome
from rowferry.errors import ServerFault
from rowferry.http import event_loop
from rowferry_worker.objects import conditional_writes
from rowferry_worker.objects.copy import copy_object
from support.processes.processes import wait_for
from support.s3.piping_servers import NEW, OLD, SECONDS, Handler, Pair, flip, md5, running_pair

BODY = bytes(range(256)) * 8192
"""2 MiB: it is piped."""
THEIRS = b"the application's"


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Two servers, between which any write takes long enough for another look."""
    monkeypatch.setattr(conditional_writes, "LOOK_AGAIN_AFTER", timedelta(0))
    with running_pair() as pair:
        pair.legacy.put(OLD, BODY)
        pair.support.confirms_digests = True
        yield pair
        wait_for(lambda: not pair.clients["legacy"]._pool._streaming)
        pair.assert_nothing_open()


def write_meanwhile(pair: Pair, *, puts: int = 1) -> None:
    """Have the application write its object when the first half of our last PUT, of so many, has been sent."""

    def put_theirs(handler: Handler, body: bytes) -> None:
        half = len(body) // 2
        handler.respond(200, body[:half], {"ETag": f'"{md5(BODY)}"'}, length=len(body))
        wait_for(lambda: pair.production.seen.count("PUT") == puts)
        pair.production.put(NEW, THEIRS)
        handler.wfile.write(body[half:])

    pair.legacy.deviations += [put_theirs]


@pytest.mark.parametrize("knows", [True, False, None])
@pytest.mark.parametrize("trusts", [True, None])
def test_an_object_that_appears_during_a_slow_write_is_not_overwritten(
    pair: Pair, knows: bool | None, trusts: bool | None
) -> None:
    """A server may not know the condition, or heed it before it reads the body only."""
    pair.production.looks_first = True
    pair.support.confirms_digests = trusts
    pair.support._supported.clear()
    if knows is not None:
        pair.support._supported["PutObject"] = knows
    write_meanwhile(pair)
    assert pair.copy().outcome is Outcome.CONFLICT
    assert pair.written == THEIRS
    wait_for(lambda: "PUT cut off" in pair.production.seen)
    assert not [line for line in pair.recorded if line.startswith("PutObject")], "the server has refused nothing"


def test_who_may_overwrite_does_not_look_again(pair: Pair) -> None:
    pair.options = type(pair.options)(pair.options.method, pair.support, "overwrite", pair.options.properties)
    pair.production.put(NEW, THEIRS)
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY
    wait_for(lambda: pair.production.seen == ["PUT cut off", "HEAD", "PUT"])


def test_a_quick_write_is_not_looked_after(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional_writes, "LOOK_AGAIN_AFTER", SECONDS)
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.production.seen == ["PUT"]


def test_looks_find_a_connection_where_all_of_them_write(pair: Pair) -> None:
    pair.support._supported["PutObject"] = False

    async def copy_all() -> list[object]:
        copies = (copy_object(pair.requests(), pair.options, OLD, f"avatar/{n}.png") for n in range(40))
        return await asyncio.gather(*copies, return_exceptions=True)

    outcomes = event_loop.run(copy_all(), SECONDS)
    assert [result for result in outcomes if isinstance(result, Exception)] == []
    assert {body for body, _ in pair.production.objects.values()} == {BODY}
    assert len(pair.production.objects) == 40


@pytest.mark.parametrize("knows", [True, False])
def test_a_damaged_object_in_whose_place_another_comes_during_its_repair_is_left_alone(pair: Pair, knows: bool) -> None:
    """Between the look and the end of the write: the second look sees it, and servers that know If-Match do."""
    pair.production.checks_md5 = False
    pair.support._supported["PutObject"] = knows
    pair.production.deviations += [lambda _, body: flip(body)]
    pair.legacy.deviations += [lambda _, body: body]
    write_meanwhile(pair, puts=2)
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pair.copy()
    assert pair.written == THEIRS
    assert pair.copy().outcome is Outcome.CONFLICT


def test_a_repair_is_bound_to_the_damaged_object_where_the_server_knows_conditions(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_first(handler: Handler, body: bytes) -> bytes:
        handler.store.put(NEW, THEIRS)
        return body

    monkeypatch.setattr(conditional_writes, "LOOK_AGAIN_AFTER", SECONDS)
    pair.production.checks_md5 = False
    pair.production.deviations += [lambda _, body: flip(body), write_first]
    assert pair.copy().outcome is Outcome.CONFLICT
    assert pair.written == THEIRS


@pytest.mark.parametrize("is_before_the_look", [True, False])
def test_a_damaged_object_that_was_removed_meanwhile_is_no_missing_legacy_object(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, is_before_the_look: bool
) -> None:
    def remove(handler: Handler, body: bytes) -> bytes | None:
        handler.store.objects.clear()
        if "If-Match" in handler.headers:
            return body
        return handler.respond(200, b"", {"ETag": f'"{md5(flip(body))}"'})

    monkeypatch.setattr(conditional_writes, "LOOK_AGAIN_AFTER", SECONDS)
    pair.production.checks_md5 = False
    pair.production.deviations += [remove] if is_before_the_look else [lambda _, body: flip(body), remove]
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pair.copy()
    assert pair.copy().outcome is Outcome.MIGRATED
