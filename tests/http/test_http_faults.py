"""Servers that are careless, or worse: no answer passes for another one's, none is lost, nothing is kept."""

import gc
import socket
import threading
from contextlib import suppress

import pytest

from rowferry.errors import ServerFault, Unreachable
from rowferry.http.parser import ResponseParser
from rowferry.plan import ProductionSide
from rowferry.s3 import client as s3_client
from rowferry.s3.operations import put_object
from rowferry.s3.responses import Response
from support.processes.processes import wait_for
from support.s3.clients import COPY, GET, HEAD, WAIT_SECONDS, ask, begin, facing, opened
from support.s3.said import OK, say
from support.s3.stand_in import answer


def test_bytes_that_are_no_text_travel_in_headers_as_they_are() -> None:
    told = OK + b"x-amz-meta-a: caf\xe9\r\nContent-Length: 0\r\n\r\n"
    with facing(say(told)) as (client, _):
        value = ask(client, GET).headers["x-amz-meta-a"]
        request = put_object("k", b"", headers=[("x-amz-meta-a", value)], if_none_match=False)
        assert b"\r\nx-amz-meta-a: caf\xe9\r\n" in client._writer.write(request, client._keys.current)


def test_bodies_are_let_go_without_the_garbage_collector() -> None:
    """A worker looks for circles of objects seldom: none may hold what was read."""

    def count_of_what_is_read() -> int:
        return sum(isinstance(one, ResponseParser | Response) for one in gc.get_objects())

    with facing(answer(200, b"x" * 100_000)) as (client, _):
        ask(client, GET)
        gc.collect()
        before = count_of_what_is_read()
        gc.disable()
        try:
            for _ in range(20):
                ask(client, GET)
            wait_for(lambda: count_of_what_is_read() <= before)
        finally:
            gc.enable()


def test_who_waits_is_served_by_those_that_are_open_when_no_more_can_be_opened() -> None:
    with facing(answer(200, b"x"), max_in_flight=8) as (client, server):
        assert ask(client, GET).body == b"x"
        server._listener.shutdown(socket.SHUT_RDWR)
        server._listener.close()
        asked = [begin(client, GET) for _ in range(50)]
        assert [each.result(WAIT_SECONDS).body for each in asked] == [b"x"] * 50


def test_a_server_that_closes_what_it_has_just_accepted_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def slam() -> None:
            while not over.is_set():
                with suppress(OSError):
                    listener.accept()[0].close()

        door = threading.Thread(target=slam, daemon=True)
        door.start()
        side = ProductionSide("b", endpoint_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        with opened(side) as client:
            asked = [begin(client, HEAD) for _ in range(20)]
            assert {type(each.result(WAIT_SECONDS).error) for each in asked} == {Unreachable}
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        door.join(60)


def test_a_server_that_always_closes_without_saying_so_fails_nothing() -> None:
    with facing(say(OK + b"Content-Length: 1\r\n\r\nx", close=True)) as (client, _):
        asked = [begin(client, GET) for _ in range(300)]
        assert {each.result(WAIT_SECONDS).error for each in asked} == {None}


def test_an_answer_that_cannot_be_read_fails_its_own_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with facing(answer(200, b"x")) as (client, _):
        with monkeypatch.context() as broken:
            broken.setattr(s3_client, "find_error", lambda *_, **__: 1 / 0)
            error = ask(client, GET).error
        assert isinstance(error, ServerFault)
        assert "ZeroDivisionError" in str(error)
        assert ask(client, GET).body == b"x"


def test_no_task_ends_in_an_error_as_connections_are_opened(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # what other tests have left
    caplog.clear()
    with facing(answer(200), answer(200)) as (client, _):
        assert ask(client, GET).error is None
        gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_what_is_read_is_asked_for_as_it_is_stored() -> None:
    with facing(answer(200)) as (client, server):
        for request in (GET, HEAD, COPY):
            ask(client, request)
    assert ["Accept-Encoding: gzip" in head for head in server.requests] == [True, True, False]
    assert not any("accept-encoding" in head.split("SignedHeaders=")[1].split(",")[0] for head in server.requests)
