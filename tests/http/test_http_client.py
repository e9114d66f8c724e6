"""What HTTP/1.1 allows a server to say, read as it is meant; connections are kept, and never trusted too far."""

import socket
from functools import partial
from urllib.parse import urlsplit

import pytest

from rowferry.errors import ObjectDamaged, ObjectRejected, ServerFault, Throttled, TimedOut, Unreachable
from rowferry.http.pool import IDLE_SECONDS
from rowferry.plan import ProductionSide
from rowferry.s3.operations import complete_multipart_upload, copy_object, put_object
from support.processes.processes import wait_for
from support.s3.clients import COPY, GET, HEAD, LIST, WAIT_SECONDS, ask, begin, facing, opened
from support.s3.request_clock import stop_request_clock
from support.s3.said import OK, connections_of, say
from support.s3.scenarios import Scenario, hold_scenarios
from support.s3.stand_in import StandIn, answer, error_body, hang_up, keep_silent, reset, stop_halfway

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
THREE = OK + b"Content-Length: 3\r\n\r\n"
X = answer(200, b"x")
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
X_WITH_ETAG = {"status": 200, "body": b"x", "headers": {"etag": '"e"', "content-length": "1"}}
IN_THE_MIDDLE = (Unreachable, "in the middle of its response")


def foreign(encoding: str) -> bytes:
    return f'<?xml version="1.0" encoding="{encoding}"?><Error><Code>Oops</Code></Error>'.encode()


READ = {
    "a connection is kept": Scenario([X], [(GET, b"x")] * 5, 1),
    "the length in a HEAD's answer is not that of a body": Scenario(
        [say(OK + b"Content-Length: 12345\r\n\r\n"), X], [(HEAD, {"content_length": 12345}), (GET, b"x")], 1
    ),
    "an interim answer is not the answer": Scenario(
        [say(INTERIM + OK + b'ETag: "e"\r\nContent-Length: 1\r\n\r\nx')], [(GET, X_WITH_ETAG)] * 2, 1
    ),
    "a body in chunks": Scenario(
        [say(CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")], [(LIST, b"abcde"), (LIST, b"abcde")], 1
    ),
    "trailers change no header": Scenario(
        [say(OK + b'ETag: "e"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nETag: "f"\r\n\r\n')],
        [(LIST, {"etag": "e"})],
    ),
    "a refusal may end with the connection": Scenario(
        [say(b"HTTP/1.1 503 Slow\r\n\r\n" + error_body("SlowDown"), close=True)], [(GET, Throttled)] * 2, 2
    ),
    "what was asked for may not end with it": Scenario([say(OK + b"\r\nabc", close=True)], [(GET, Unreachable)]),
    "a body that is cut off": Scenario([say(OK + b"Content-Length: 9\r\n\r\nabc", close=True)], [(GET, IN_THE_MIDDLE)]),
    "a chunk that is cut off": Scenario([say(CHUNKED + b"9\r\nabc", close=True)], [(GET, IN_THE_MIDDLE)]),
    "a server that wants to close": Scenario(
        [answer(200, b"x", Connection="close")], [(GET, None), (HEAD, None), (GET, None)], 3
    ),
    "a HEAD's answer of HTTP/1.0": Scenario(
        [say(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n")], [(HEAD, None)] * 3, 3
    ),
    "a HEAD's answer that wants to close": Scenario(
        [say(OK + b"Connection: TE, Close\r\nContent-Length: 5\r\n\r\n")], [(HEAD, None)] * 3, 3
    ),
    "a second answer, unasked": Scenario(
        [say(THREE + b"one" + THREE + b"two"), answer(200, b"mine")], [(GET, b"one"), (GET, b"mine")], 2
    ),
    "bytes behind the answer": Scenario(
        [say(THREE + b"onetwo"), answer(200, b"mine")], [(GET, b"one"), (GET, b"mine")], 2
    ),
    "a HEAD's answer with a body": Scenario(
        [say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 400\r\n\r\n" + b"x" * 400), X],
        [(HEAD, {"status": 404}), (GET, b"x")],
    ),
    "an answer that will be too long": Scenario(
        [say(OK + b"Content-Length: 1001\r\n\r\n")],
        [(GET, (ObjectRejected, "ResponseTooLong"))],
        settings={"max_body_bytes": 1000},
    ),
    "chunks that are too many": Scenario(
        [say(CHUNKED + 2 * (b"64\r\n" + b"x" * 100 + b"\r\n"))],
        [(GET, ObjectRejected)],
        settings={"max_body_bytes": 150},
    ),
    "no HTTP": Scenario([say(b"HTTP/1.1 abc\r\n\r\n"), X], [(COPY, ServerFault), (GET, b"x")], 2),
    "a refusal before the body was read": Scenario(  # whose rest a careless server would read as a request
        [say(b"HTTP/1.1 503 Slow\r\nContent-Length: 0\r\n\r\n"), X],
        [(put_object("k", b"x" * 100_000, if_none_match=False), Throttled), (GET, b"x")],
        2,
    ),
    "a part that was not asked for": Scenario(
        [answer(206, b"abc", Content_Range="bytes 0-2/9")], [(GET, ObjectDamaged)]
    ),
    "an error in an encoding of China": Scenario([answer(502, foreign("gbk"))], [(COPY, ServerFault)]),
    "an error in an encoding of nobody": Scenario([answer(502, foreign("no-such-thing"))], [(COPY, ServerFault)]),
    "another protocol": Scenario(
        [say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")], [(GET, ServerFault)]
    ),
    "a header without measure": Scenario(
        [say(OK + b"x-long: " + b"x" * 300_000 + b"\r\nContent-Length: 0\r\n\r\n")], [(GET, ServerFault)]
    ),
}


def test_what_a_server_says_is_read_as_it_is_meant(subtests: pytest.Subtests) -> None:
    hold_scenarios(READ, subtests)


COMPLETE = complete_multipart_upload("k", upload_id="u", parts=[(1, "e")], if_none_match=False)
PUT = put_object("k", b"x", if_none_match=False)
SENT_AGAIN = {
    "a read, after a hang-up": Scenario([answer(200), hang_up, X], [(HEAD, None), (GET, b"x")], 2, 3),
    "a read, after a reset": Scenario([answer(200), reset, X], [(HEAD, None), (GET, b"x")], 2, 3),
    "no read over a new connection": Scenario(
        [answer(200), hang_up, hang_up, X], [(HEAD, None), (GET, Unreachable)], requests=3
    ),
    "no read whose answer had begun": Scenario(
        [answer(200), stop_halfway, X], [(HEAD, None), (GET, Unreachable)], requests=2
    ),
    "a write that overwrites nothing": Scenario(
        [answer(200), hang_up, answer(200)], [(HEAD, None), (COPY, None)], requests=3
    ),
} | {
    f"no {request.operation} without a condition": Scenario(
        [answer(200), hang_up, answer(200)], [(HEAD, None), (request, Unreachable)], requests=2
    )
    for request in (COMPLETE, copy_object("k", source_bucket="old", source_key="k", if_none_match=False), PUT)
}
"""Over a kept connection that ends without a byte."""


def test_what_a_kept_connection_has_swallowed_is_sent_again_where_that_is_harmless(subtests: pytest.Subtests) -> None:
    hold_scenarios(SENT_AGAIN, subtests)


def test_headers_without_an_end_are_refused_while_they_come(subtests: pytest.Subtests) -> None:
    def talk(connection: socket.socket, start: bytes) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(b"x" * 65536)

    starts = (OK + b"x-long: ", CHUNKED + b"0\r\nx-long: ", b"HTTP/1.1 100 Go on\r\nx: ")
    longer = [(GET, (ServerFault, "headers are longer"))]
    hold_scenarios({repr(start): Scenario([partial(talk, start=start)], longer) for start in starts}, subtests)


def test_a_connection_that_the_server_has_closed_or_that_has_rested_for_long_is_not_used_again() -> None:
    with facing(X) as (client, server):
        ask(client, GET)
        server._connections[0].shutdown(socket.SHUT_RDWR)
        wait_for(lambda: not client._pool._open)
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 2
        (connection,) = client._pool._open
        connection.idle_since -= IDLE_SECONDS + 1
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 3


def test_no_more_connections_than_allowed() -> None:
    with facing(X, max_in_flight=3) as (client, server):
        asked = [begin(client, GET) for _ in range(60)]
        assert [each.result(WAIT_SECONDS).body for each in asked] == [b"x"] * 60
        assert connections_of(server) <= 3


def test_a_body_is_sent_whole_and_signed() -> None:
    with facing(answer(200)) as (client, server):
        for size in (1, 70_000, 3_000_000):
            request = put_object("k", b"x" * size, headers=[("Content-MD5", "Zg==")], if_none_match=False)
            assert ask(client, request).error is None
    digests = [head.split("x-amz-content-sha256: ")[1].split("\r\n")[0] for head in server.requests]
    assert [len(digests[0]), *digests[1:]] == [64, "UNSIGNED-PAYLOAD", "UNSIGNED-PAYLOAD"]
    assert connections_of(server) == 1


def test_an_unknown_host_name_is_unreachable() -> None:
    with opened(ProductionSide("b", endpoint_url="http://nobody.invalid:1")) as client:
        assert isinstance(ask(client, HEAD).error, Unreachable)


def test_a_dead_address_does_not_hide_a_listening_one() -> None:
    """`localhost` is ::1 as well, on most machines; the server is at 127.0.0.1 only."""
    with StandIn(answer(200)) as server:
        port = urlsplit(server.endpoint_url).port
        with opened(ProductionSide("b", endpoint_url=f"http://localhost:{port}")) as client:
            assert ask(client, HEAD).error is None


def test_many_requests_beyond_the_connections_all_fail_when_no_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        side = ProductionSide("b", endpoint_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
    with opened(side, max_in_flight=2) as client:
        asked = [begin(client, HEAD) for _ in range(20)]
        assert {type(each.result(WAIT_SECONDS).error) for each in asked} == {Unreachable}
        assert client.last_response is None


def test_cancelling_one_request_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stop_request_clock(monkeypatch)
    with facing(keep_silent, X) as (client, server):
        slow = begin(client, COPY)
        wait_for(lambda: server.requests)
        assert ask(client, GET).body == b"x"
        assert not slow.done()
        clock.move(91)
        error = slow.result(WAIT_SECONDS).error
        assert isinstance(error, TimedOut)
        assert "CopyObject" in str(error)
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 2


def test_who_has_given_up_in_the_line_does_not_hold_up_those_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stop_request_clock(monkeypatch)
    with facing(keep_silent, X, max_in_flight=1) as (client, _):
        asked = [begin(client, COPY) for _ in range(3)]
        wait_for(lambda: len(client._deadlines._in_flight) == 3)
        clock.move(91)
        assert {type(each.result(WAIT_SECONDS).error) for each in asked} == {TimedOut}
        assert ask(client, GET).body == b"x"
