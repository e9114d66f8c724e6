"""The life of a lane: its connection, its place, its deadline, and what ends it from outside."""

import asyncio
import socket
from collections.abc import Coroutine
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rowferry.batch import Outcome
from rowferry.errors import CutOff, ObjectNotFound
from rowferry.http import event_loop
from rowferry.s3.operations import head_object
from rowferry_worker.batch.copies import find_plain_copies
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.copying.server_copy import ServerCopy
from rowferry_worker.scheduling.copy_run import ObjectResult
from support.processes.processes import wait_for
from support.s3.copies import options_of
from support.s3.lanes import COPIED, FOUND, USUAL, Copier, copying, describe
from support.s3.said import OK, say
from support.s3.stand_in import Behaviour, keep_silent, refuse

pytestmark = pytest.mark.usefixtures("no_pauses")
KEYS = [f"image/{number}.png" for number in range(40)]
WHOLE = OK + b"Content-Length: %d\r\n\r\n%s" % (len(COPIED), COPIED)
WITHIN = timedelta(seconds=60)
Results = dict[str, ObjectResult]


def judge(head: str) -> Behaviour:
    return USUAL if head.startswith("PUT") else FOUND


async def work(copier: Copier, *runs: list[str], **more: Any) -> Results:
    """Copy the objects of these batches at once, in lanes, and return all results."""
    await copier.warm_up()
    started = [copier.run(keys, in_lanes=True, **more) for keys in runs]
    results: Results = {}
    tasks = [asyncio.ensure_future(run.run_all()) for run in started]
    for task in tasks:
        results |= await task
    assert copier.scheduler._in_flight == copier.scheduler.tally.in_flight == 0
    for client in copier.clients.values():
        assert not client.deadlines._in_flight
        assert not client._pool._outbox.busy
    return results


def test_a_lane_takes_key_after_key_of_one_batch_and_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over one connection, and without a task."""
    with copying(judge) as copier:
        monkeypatch.setattr(copier, "copy", None)
        told: list[tuple[str, int]] = []
        results = event_loop.run(
            work(copier, KEYS[:20], KEYS[20:], note=lambda key, _result, count: told.append((key, count))), WITHIN
        )
        assert [*results] == KEYS
        assert all(isinstance(result, CopyResult) for result in results.values())
        seen = copier.seen(results)
        assert (len(seen.sent), seen.connections) == (40, 1)
        assert sum(seen.counts.values()) == 40
        assert sum(count for _, count in told) == 40


@pytest.mark.parametrize("size", [1, 7, 60, len(WHOLE) - 1])
def test_a_response_in_pieces_is_one(size: int) -> None:
    def in_pieces(connection: socket.socket) -> None:
        for begin in range(0, len(WHOLE), size):
            connection.sendall(WHOLE[begin : begin + size])

    with copying(lambda _: in_pieces) as copier:
        results = event_loop.run(work(copier, KEYS[:3]), WITHIN)
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}
        assert copier.seen(results).connections == 1
        assert len(copier.server.requests) == 4


@pytest.mark.parametrize(
    "words", [WHOLE + b"x", WHOLE + WHOLE, WHOLE.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)]
)
def test_a_connection_that_may_not_go_on_is_left(words: bytes) -> None:
    """What came on it counts; nothing that came unasked is the response to another request."""
    with copying(lambda _: say(words)) as copier:
        results = event_loop.run(work(copier, KEYS[:3]), WITHIN)
        seen = copier.seen(results)
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}
        assert (len(seen.sent), seen.connections) == (3, 3)


def test_a_learned_rate_closes_lanes() -> None:
    refused = iter([refuse(503, "SlowDown")] * 8)

    def throttle(head: str) -> Behaviour:
        return next(refused, judge(head)) if head.startswith("PUT") else judge(head)

    with copying(throttle, most=8) as copier:
        run = copier.plan(KEYS)
        results = event_loop.run(work(copier, KEYS), WITHIN)
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}
        rate = copier.scheduler.rates["new CopyObject"]
        assert copier.scheduler.is_open(run) == (rate.per_second is None)


@pytest.mark.parametrize(
    ("status", "code", "sent"),
    [(404, "NoSuchKey", (3, 1)), (412, "PreconditionFailed", (3, 2)), (503, "SlowDown", (4, 1))],
)
def test_a_connection_goes_on_after_a_whole_refusal(status: int, code: str, sent: tuple[int, int]) -> None:
    """Its lane takes the next key, where the refusal is the result; else a task takes it, and looks by another one."""
    refused = iter([refuse(status, code)])

    def refuse_once(head: str) -> Behaviour:
        return next(refused, judge(head)) if head.startswith("PUT") else judge(head)

    with copying(refuse_once) as copier:
        results = event_loop.run(work(copier, KEYS[:3]), WITHIN)
        seen = copier.seen(results)
        assert (sum(line.startswith("PUT") for line in seen.sent), seen.connections) == sent


def test_what_was_usual_before_an_error_is_told_before_it() -> None:
    """So that a limit, and the evidence of an outage, hear of them in their order."""
    with copying(lambda head: refuse(404, "NoSuchKey") if "image/3.png" in head else judge(head)) as copier:
        told: list[tuple[str, int]] = []
        event_loop.run(work(copier, KEYS[:8], note=lambda key, _result, count: told.append((key, count))), WITHIN)
        keys = [key for key, _ in told]
        before = keys.index("image/3.png")
        assert keys[before - 1] == "image/2.png"
        assert sum(count for _, count in told[:before]) == 3
        assert sum(count for _, count in told) == 8


def test_metrics_have_all_of_a_batch_once_it_ends() -> None:
    with copying(judge) as copier:
        counted: list[int] = []
        copier.scheduler.tally.flush = lambda: counted.append(sum(map(len, copier.scheduler.tally._requests.values())))
        event_loop.run(work(copier, KEYS), WITHIN)
        assert counted[-1] == len(KEYS)


def test_a_lane_gives_its_connection_to_who_waits_for_one() -> None:
    """It would else go on to the end of its batch, and of those behind it."""
    with copying(judge) as copier:

        async def ask_meanwhile() -> None:
            await copier.warm_up()
            run = copier.run(KEYS, in_lanes=True)
            ended = asyncio.ensure_future(run.run_all())
            await asyncio.sleep(0)
            await copier.clients["production"].send(head_object("production", "waits"))
            assert not ended.done()
            await ended

        event_loop.run(ask_meanwhile(), WITHIN)
        (asked,) = [number for number, line in enumerate(copier.server.request_lines) if "waits" in line]
        assert asked < 5


def test_an_object_that_is_missing_is_looked_for_in_production_where_its_row_stays() -> None:
    with copying(judge) as copier:
        context: Any = SimpleNamespace(
            migration=SimpleNamespace(find_lanes=lambda side, _: (copier.clients[side], "new CopyObject"))
        )

        async def look(_key: str) -> CopyResult:
            return CopyResult(Outcome.KEPT)

        for stays in (False, True):
            usual = find_plain_copies(context, copier.options, {"a": "new/a"}, look, stays=stays)
            assert usual is not None
            assert (ObjectNotFound in usual.final) is not stays


def test_an_object_whose_time_is_over_ends_and_the_others_go_on() -> None:
    with copying(
        lambda head: keep_silent if "image/1.png" in head else judge(head), deadline=timedelta(seconds=1)
    ) as copier:
        results = event_loop.run(work(copier, KEYS[:3]), WITHIN)
        assert [describe(result)[:8] for result in results.values()] == ["migrated", "TimedOut", "migrated"]
        assert len(copier.server.requests) == 4


def test_a_server_that_is_cut_off_ends_what_is_in_lanes() -> None:
    with copying(lambda head: keep_silent if head.startswith("PUT") else judge(head), most=4) as copier:
        client = copier.clients["production"]
        working = event_loop.submit(work(copier, KEYS[:8]))
        wait_for(lambda: sum(head.startswith("PUT") for head in copier.server.requests) >= 4)
        event_loop.call_soon(client.cut_off, CutOff("Silent", "it says nothing"))
        results = working.result(60)
        assert {type(result) for result in results.values()} == {CutOff}


def test_a_batch_that_is_cancelled_closes_its_lanes_and_frees_their_places() -> None:
    with copying(lambda head: keep_silent if "cancelled" in head else judge(head), most=4) as copier:

        async def cancel() -> Results:
            await copier.warm_up()
            run = copier.run([f"cancelled/{number}" for number in range(8)], in_lanes=True)
            ended = asyncio.ensure_future(run.run_all())
            while len(copier.server.requests) < 5:
                await asyncio.sleep(0.01)
            run.cancel()
            await ended
            return await work(copier, KEYS)

        results = event_loop.run(cancel(), WITHIN)
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}


def test_a_mistake_of_ours_in_a_lane_fails_its_batch_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with copying(judge, most=2) as copier:

        async def fail() -> Results:
            await copier.warm_up()
            run = copier.run(KEYS[:5], in_lanes=True)
            monkeypatch.setattr(run.find_usual(), "recognise", None)
            with pytest.raises(TypeError):
                await run.run_all()
            return await work(copier, KEYS[5:])

        results = event_loop.run(fail(), WITHIN)
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}


def test_a_batch_goes_on_in_lanes_once_its_server_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_look(line: str) -> bool:
        return line.startswith("HEAD ") and "/new/" in line.partition("\r\n")[0]

    with copying(lambda head: refuse(404, "NoSuchKey") if is_look(head) else judge(head)) as copier:
        copier.options = options_of(ServerCopy("legacy"), "probing")

        copy, in_tasks = copier.copy, list[str]()

        def note(*_: object) -> None:
            copier.options.support.note("CopyObject", supported=True)

        def count(key: str) -> Coroutine[Any, Any, CopyResult]:
            in_tasks.append(key)
            return copy(key)

        monkeypatch.setattr(copier, "copy", count)
        results = event_loop.run(work(copier, KEYS, note=note), WITHIN)
        assert in_tasks == KEYS[:1]
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}
        assert sum(map(is_look, copier.server.request_lines)) == 1


def test_a_mistake_of_ours_before_the_lanes_fails_its_batch_and_no_other() -> None:
    with copying(judge, most=2) as copier:

        async def fail() -> Results:
            await copier.warm_up()
            with pytest.raises(ZeroDivisionError):
                await copier.run(KEYS[:5], in_lanes=True, find_usual=lambda: 1 // 0).run_all()
            return await work(copier, KEYS[5:])

        results = event_loop.run(fail(), WITHIN)
        assert {describe(result)[:8] for result in results.values()} == {"migrated"}


def test_a_batch_of_which_nothing_is_plain_takes_no_lane() -> None:
    with copying(judge) as copier:
        assert copier.options.plain_copy is not None
        copier.options.support._supported["CopyObject"] = False
        assert copier.options.plain_copy is None
