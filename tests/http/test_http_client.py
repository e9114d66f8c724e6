"""What HTTP/1.1 allows a server to say, read as it is meant; connections are kept, and never trusted too far."""

import socket
from urllib.parse import urlsplit

import pytest

from rowferry.errors import ObjectRejected, ServerFault, Throttled, Unreachable
from rowferry.http.pool import IDLE_SECONDS
from rowferry.plan import ProductionSide
from rowferry.s3.operations import put_object
from support.processes.processes import wait_for
from support.s3.clients import COPY, GET, HEAD, LIST, ask, begin, facing, opened
from support.s3.request_clock import stop_request_clock
from support.s3.said import OK, connections_of, say
from support.s3.stand_in import StandIn, answer, error_body


def test_a_connection_is_kept_for_the_next_request() -> None:
    with facing(answer(200, b"x")) as (client, server):
        for _ in range(5):
            assert ask(client, GET).body == b"x"
        assert connections_of(server) == 1


def test_the_length_in_a_heads_answer_is_not_that_of_a_body() -> None:
    with facing(say(OK + b"Content-Length: 12345\r\n\r\n"), answer(200, b"x")) as (client, server):
        assert ask(client, HEAD).content_length == 12345
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 1


def test_an_interim_answer_is_not_the_answer() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    with facing(say(interim + OK + b'ETag: "e"\r\nContent-Length: 1\r\n\r\nx')) as (client, server):
        for _ in range(2):
            got = ask(client, GET)
            assert (got.status, got.body, got.headers) == (200, b"x", {"etag": '"e"', "content-length": "1"})
        assert connections_of(server) == 1


def test_a_body_may_come_in_chunks() -> None:
    chunked = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    with facing(say(OK + chunked)) as (client, server):
        assert [ask(client, LIST).body for _ in range(2)] == [b"abcde", b"abcde"]
        assert connections_of(server) == 1


def test_a_refusal_may_end_with_the_connection_but_what_was_asked_for_may_not() -> None:
    refusal = b"HTTP/1.1 503 Slow\r\n\r\n" + error_body("SlowDown")
    with facing(say(refusal, close=True)) as (client, server):
        assert [type(ask(client, GET).error) for _ in range(2)] == [Throttled, Throttled]
        assert connections_of(server) == 2
    with facing(say(OK + b"\r\nabc", close=True)) as (client, _):
        assert isinstance(ask(client, GET).error, Unreachable)


@pytest.mark.parametrize("framing", [b"Content-Length: 9\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n9\r\nabc"])
def test_a_body_that_is_cut_off_is_none(framing: bytes) -> None:
    with facing(say(OK + framing, close=True)) as (client, _):
        error = ask(client, GET).error
    assert isinstance(error, Unreachable)
    assert "in the middle of its response" in str(error)


def test_a_server_that_wants_to_close_gets_a_new_connection() -> None:
    with facing(answer(200, b"x", Connection="close")) as (client, server):
        assert [ask(client, request).error for request in (GET, HEAD, GET)] == [None] * 3
        assert connections_of(server) == 3


def test_more_than_was_asked_for_does_not_pass_for_the_next_answer() -> None:
    whole = OK + b"Content-Length: 3\r\n\r\n"
    for surplus in (whole + b"two", b"two"):
        with facing(say(whole + b"one" + surplus), answer(200, b"mine")) as (client, server):
            assert ask(client, GET).body == b"one"
            assert ask(client, GET).body == b"mine"
            assert connections_of(server) == 2


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    with facing(answer(200, b"x")) as (client, server):
        ask(client, GET)
        server._connections[0].shutdown(socket.SHUT_RDWR)
        wait_for(lambda: not client._pool._open)
        assert ask(client, GET).error is None
        assert connections_of(server) == 2


def test_a_connection_that_has_rested_for_long_is_not_used_again() -> None:
    with facing(answer(200, b"x")) as (client, server):
        ask(client, GET)
        (connection,) = client._pool._open
        connection.idle_since -= IDLE_SECONDS + 1
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 2


def test_an_answer_that_is_too_long_is_refused_before_it_has_come() -> None:
    with facing(say(OK + b"Content-Length: 1001\r\n\r\n"), max_body_bytes=1000) as (client, _):
        error = ask(client, GET).error
        assert isinstance(error, ObjectRejected)
        assert error.code == "ResponseTooLong"
    endless = OK + b"Transfer-Encoding: chunked\r\n\r\n" + 2 * (b"64\r\n" + b"x" * 100 + b"\r\n")
    with facing(say(endless), max_body_bytes=150) as (client, _):
        assert isinstance(ask(client, GET).error, ObjectRejected)


def test_no_more_connections_than_allowed() -> None:
    with facing(answer(200, b"x"), max_in_flight=3) as (client, server):
        answers: list[bytes] = []
        for _ in range(60):
            begin(client, GET, lambda got: answers.append(got.body))
        wait_for(lambda: len(answers) == 60)
        assert answers == [b"x"] * 60
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
    errors: list[object] = []
    with opened(side, max_in_flight=2) as client:
        for _ in range(20):
            begin(client, HEAD, lambda got: errors.append(type(got.error)))
        wait_for(lambda: len(errors) == 20)
    assert set(errors) == {Unreachable}


def test_what_is_no_http_closes_the_connection() -> None:
    with facing(say(b"HTTP/1.1 abc\r\n\r\n"), answer(200, b"x")) as (client, server):
        assert isinstance(ask(client, COPY).error, ServerFault)
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 2


def test_cancelling_one_request_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stop_request_clock(monkeypatch)

    def keep_waiting(connection: socket.socket) -> None:
        connection.recv(1)
        raise ConnectionError("the client left")

    with facing(keep_waiting, answer(200, b"x")) as (client, server):
        first: list[object] = []
        begin(client, COPY, lambda got: first.append(got.error))
        wait_for(lambda: server.requests)
        assert ask(client, GET).body == b"x"
        clock.move(91)
        wait_for(lambda: first)
        assert ask(client, GET).body == b"x"
        assert connections_of(server) == 2
