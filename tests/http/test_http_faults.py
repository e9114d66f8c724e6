"""Servers that are careless, or worse: no answer passes for another one's, none is lost, nothing is kept."""

import gc
import socket
import threading
from contextlib import suppress

import pytest

from rowferry.errors import ObjectDamaged, ServerFault, Throttled, TimedOut, Unreachable
from rowferry.http.parser import ResponseParser
from rowferry.plan import ProductionSide
from rowferry.s3.operations import put_object
from rowferry.s3.responses import Response
from support.processes.processes import wait_for
from support.s3.clients import COPY, GET, HEAD, LIST, ask, begin, facing, opened
from support.s3.request_clock import stop_request_clock
from support.s3.said import OK, connections_of, say
from support.s3.stand_in import StandIn, answer, keep_silent


def test_a_connection_whose_request_was_refused_unread_is_not_used_again() -> None:
    """Else the rest of the body would stand before the next request, and a careless server would read it as one."""

    def refuse_early(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 503 Slow\r\nContent-Length: 0\r\n\r\n")

    with facing(refuse_early, answer(200, b"x")) as (client, server):
        assert isinstance(ask(client, put_object("k", b"x" * 100_000, if_none_match=False)).error, Throttled)
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 2


def test_who_has_given_up_in_the_line_does_not_hold_up_those_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stop_request_clock(monkeypatch)
    with facing(keep_silent, answer(200, b"x"), max_in_flight=1) as (client, _):
        errors: list[object] = []
        for _ in range(3):
            begin(client, COPY, lambda got: errors.append(type(got.error)))
        wait_for(lambda: len(client._deadlines._in_flight) == 3)
        clock.move(91)
        wait_for(lambda: len(errors) == 3)
        assert set(errors) == {TimedOut}
        assert ask(client, GET).body == b"x"


def test_a_part_that_was_not_asked_for_is_no_object() -> None:
    with facing(answer(206, b"abc", Content_Range="bytes 0-2/9")) as (client, _):
        assert isinstance(ask(client, GET).error, ObjectDamaged)


@pytest.mark.parametrize("encoding", ["gbk", "no-such-thing"])
def test_an_error_in_a_foreign_encoding_is_an_error_all_the_same(encoding: str) -> None:
    body = f'<?xml version="1.0" encoding="{encoding}"?><Error><Code>Oops</Code></Error>'.encode()
    with facing(answer(502, body)) as (client, _):
        assert isinstance(ask(client, COPY).error, ServerFault)


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200 OK\r\nConnection: TE, Close\r\n"])
def test_a_heads_answer_may_ask_for_a_new_connection_too(head: bytes) -> None:
    with facing(say(head + b"Content-Length: 5\r\n\r\n")) as (client, server):
        assert [ask(client, HEAD).error for _ in range(3)] == [None] * 3
        assert connections_of(server) == 3


def test_a_heads_answer_with_a_body_does_not_spoil_the_next_one() -> None:
    wordy = b"HTTP/1.1 404 Not Found\r\nContent-Length: 400\r\n\r\n" + b"x" * 400
    with facing(say(wordy), answer(200, b"x")) as (client, _):
        assert ask(client, HEAD).status == 404
        assert ask(client, GET).body == b"x"


def test_bytes_that_are_no_text_travel_in_headers_as_they_are() -> None:
    told = OK + b"x-amz-meta-a: caf\xe9\r\nContent-Length: 0\r\n\r\n"
    with facing(say(told)) as (client, _):
        value = ask(client, GET).headers["x-amz-meta-a"]
        request = put_object("k", b"", headers=[("x-amz-meta-a", value)], if_none_match=False)
        assert b"\r\nx-amz-meta-a: caf\xe9\r\n" in client._writer.write(request, client._keys.current)


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        OK + b"x-long: " + b"x" * 300_000 + b"\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_what_no_s3_server_says_is_a_fault_of_the_server(words: bytes) -> None:
    with facing(say(words)) as (client, _):
        assert isinstance(ask(client, GET).error, ServerFault)


def test_trailers_change_no_header() -> None:
    trailed = b'ETag: "e"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nETag: "f"\r\n\r\n'
    with facing(say(OK + trailed)) as (client, _):
        assert ask(client, LIST).etag == "e"


def test_bodies_are_let_go_without_the_garbage_collector() -> None:
    """A worker looks for circles of objects seldom: none may hold what was read."""
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


def count_of_what_is_read() -> int:
    return sum(isinstance(one, ResponseParser | Response) for one in gc.get_objects())


def test_who_waits_is_served_by_those_that_are_open_when_no_more_can_be_opened() -> None:
    with facing(answer(200, b"x"), max_in_flight=8) as (client, server):
        assert ask(client, GET).body == b"x"
        stop_listening(server)
        bodies: list[bytes] = []
        for _ in range(50):
            begin(client, GET, lambda got: bodies.append(got.body))
        wait_for(lambda: len(bodies) == 50)
        assert bodies == [b"x"] * 50


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
        errors: list[object] = []
        with opened(side) as client:
            for _ in range(20):
                begin(client, HEAD, lambda got: errors.append(type(got.error)))
            wait_for(lambda: len(errors) == 20)
        assert set(errors) == {Unreachable}
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        door.join(60)


def stop_listening(server: StandIn) -> None:
    server._listener.shutdown(socket.SHUT_RDWR)
    server._listener.close()
