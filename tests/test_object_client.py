"""The hot path against real S3 servers, and against one that misbehaves."""

import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import Credentials, RefreshableCredentials

from processes import wait_for
from rowferry import object_client, s3_request
from rowferry.endpoint import resolve_endpoint
from rowferry.errors import (
    AccessDenied,
    BucketNotFound,
    Cancelled,
    CredentialsUnavailable,
    ObjectError,
    ObjectNotFound,
    ObjectRejected,
    PreconditionFailed,
    ServerFault,
    Throttled,
    TimedOut,
    Unreachable,
)
from rowferry.object_client import ObjectClient
from rowferry.plan import Side, SideName
from rowferry.s3_answer import Answer, read_tags, read_text
from rowferry.s3_request import Request
from servers import Buckets
from stand_in import Behaviour, StandIn, answer, babble, error_body, hang_up, keep_silent, refuse, reset, stop_halfway

WAIT_SECONDS = 60
HEAD = s3_request.head_object("production", "k")
COPY = s3_request.copy_object("k", source_bucket="old", source_key="k", if_none_match=True)
GET = s3_request.get_object("production", "k")


def ask(client: ObjectClient, request: Request) -> Answer:
    """Send a request and return its answer."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    client.send(request, answers.put)
    return answers.get(timeout=WAIT_SECONDS)


@contextmanager
def opened(side: Side, credentials: Any = None, **settings: Any) -> Iterator[ObjectClient]:
    """A client of `side` that retries without long waits."""
    chosen = {
        "endpoint": resolve_endpoint(side),
        "max_in_flight": 8,
        "deadline": timedelta(seconds=30),
        "backoff": timedelta(milliseconds=2),
        **settings,
    }
    client = ObjectClient(side, credentials or Credentials("AK", "SK"), **chosen)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def facing(*behaviours: Behaviour, **settings: Any) -> Iterator[tuple[ObjectClient, StandIn]]:
    """A client of a server that answers as told."""
    with StandIn(*behaviours) as server, opened(side_of(server), **settings) as client:
        yield client, server


def side_of(server: StandIn, name: SideName = "production") -> Side:
    return Side(name, "bucket", endpoint_url=server.endpoint_url)


@contextmanager
def clients_of(buckets: Buckets) -> Iterator[tuple[ObjectClient, ObjectClient]]:
    """The clients of both buckets of a real server."""
    url, secret = buckets.server.endpoint_url, buckets.server.secret_key
    credentials = Credentials(buckets.server.access_key, secret)
    with (
        opened(Side("legacy", buckets.legacy, endpoint_url=url), credentials) as legacy,
        opened(Side("production", buckets.production, endpoint_url=url), credentials) as production,
    ):
        yield legacy, production


# Against real servers.

STRANGE_KEYS = [
    "plain.jpg",
    "with space and+plus",
    "100%25.txt",
    "q'\"<>`|^{}[]&=#;,@:!$*()~",
    "emoji-\U0001f600/\U0001f680.png",
    "nfc-\u00e9",
    "nfd-e\u0301",
    "\u00e9" * 100,
    "tab\tdel\x7f",
    "colon:/slash",
    "back\\slash",
]
FOLDED_KEYS = ["//lead//twice", "/lead", "a/../b", "./a/./b", "trail/", "a?versionId=3"]
"""Keys that versitygw, whose objects are files, folds or refuses."""


def check_that_a_key_travels(buckets: Buckets, key: str) -> None:
    content = f"the bytes of {key!r}".encode()
    buckets.client.put_object(
        Bucket=buckets.legacy, Key=key, Body=content, ContentType="image/x-odd", Metadata={"a": "1"}, Tagging="t=u%2Bv"
    )
    copy = s3_request.copy_object(key, source_bucket=buckets.legacy, source_key=key, if_none_match=False)
    with clients_of(buckets) as (legacy, production):
        copied, found = ask(production, copy), ask(production, s3_request.head_object("production", key))
        assert copied.error is None
        assert copied.etag == found.etag == ask(legacy, s3_request.head_object("legacy", key)).etag
        assert (found.content_length, found.headers["content-type"]) == (len(content), "image/x-odd")
        assert found.headers["x-amz-meta-a"] == "1"
        assert ask(production, s3_request.get_object("production", key)).body == content
        assert read_tags(ask(production, s3_request.get_object_tagging("production", key)).body) == (("t", "u+v"),)
    assert [found["Key"] for found in buckets.client.list_objects_v2(Bucket=buckets.production)["Contents"]] == [key]


@pytest.mark.parametrize("key", STRANGE_KEYS)
def test_a_strange_key_is_copied_byte_for_byte(buckets: Buckets, key: str) -> None:
    check_that_a_key_travels(buckets, key)


@pytest.mark.parametrize("key", FOLDED_KEYS)
def test_a_key_that_looks_like_a_path_is_copied_byte_for_byte(moto_buckets: Buckets, key: str) -> None:
    check_that_a_key_travels(moto_buckets, key)


def test_nfc_and_nfd_stay_two_objects(buckets: Buckets) -> None:
    with clients_of(buckets) as (_, production):
        for key in ("\u00e9", "e\u0301"):
            put = s3_request.put_object(key, key.encode(), headers=[], if_none_match=True)
            assert ask(production, put).error is None
        assert ask(production, s3_request.get_object("production", "e\u0301")).body == "e\u0301".encode()


def test_a_missing_object_is_not_found_by_head_and_copy(buckets: Buckets) -> None:
    copy = s3_request.copy_object("new", source_bucket=buckets.legacy, source_key="gone", if_none_match=False)
    with clients_of(buckets) as (legacy, production):
        assert isinstance(ask(legacy, s3_request.head_object("legacy", "gone")).error, ObjectNotFound)
        assert isinstance(ask(production, copy).error, ObjectNotFound)


def test_a_missing_bucket_is_told_from_a_missing_object(buckets: Buckets) -> None:
    copy = s3_request.copy_object("new", source_bucket="no-such-bucket", source_key="k", if_none_match=False)
    with clients_of(buckets) as (_, production):
        assert isinstance(ask(production, copy).error, BucketNotFound)


def test_a_wrong_secret_is_refused_access(versitygw_buckets: Buckets) -> None:
    side = Side("production", versitygw_buckets.production, endpoint_url=versitygw_buckets.server.endpoint_url)
    with opened(side, Credentials(versitygw_buckets.server.access_key, "wrong")) as client:
        assert isinstance(ask(client, s3_request.get_object("production", "k")).error, AccessDenied)
        assert isinstance(ask(client, s3_request.head_object("production", "k")).error, AccessDenied)


def test_a_range_returns_just_its_bytes_of_the_pinned_version(buckets: Buckets) -> None:
    buckets.client.put_object(Bucket=buckets.legacy, Key="k", Body=b"0123456789")
    with clients_of(buckets) as (legacy, _):
        etag = ask(legacy, s3_request.head_object("legacy", "k")).etag
        part = ask(legacy, s3_request.get_object("legacy", "k", first_byte=2, last_byte=4, if_match=etag))
        changed = ask(legacy, s3_request.get_object("legacy", "k", if_match="another"))
    assert (part.status, part.body) == (206, b"234")
    assert isinstance(changed.error, PreconditionFailed)


def test_a_conditional_put_never_overwrites(buckets: Buckets) -> None:
    with clients_of(buckets) as (_, production):
        first = ask(production, s3_request.put_object("k", b"first", headers=[], if_none_match=True))
        second = ask(production, s3_request.put_object("k", b"second", headers=[], if_none_match=True))
        assert first.error is None
        assert isinstance(second.error, PreconditionFailed)
        assert ask(production, s3_request.get_object("production", "k")).body == b"first"


def test_an_object_is_uploaded_in_parts(buckets: Buckets) -> None:
    part, key = b"p" * (5 * 1024 * 1024), "large one"
    with clients_of(buckets) as (_, production):
        begun = ask(production, s3_request.create_multipart_upload(key, headers=[("Content-Type", "image/x-odd")]))
        upload_id = read_text(begun.body, "UploadId")
        assert upload_id
        parts: list[tuple[int, str]] = []
        for number, body in enumerate((part, b"the rest"), start=1):
            sent = ask(production, s3_request.upload_part(key, body, upload_id=upload_id, part_number=number))
            assert sent.etag
            parts.append((number, sent.etag))
        done = s3_request.complete_multipart_upload(key, upload_id=upload_id, parts=parts, if_none_match=True)
        assert ask(production, done).error is None
        found = ask(production, s3_request.head_object("production", key))
    assert (found.content_length, found.headers["content-type"]) == (len(part) + 8, "image/x-odd")


def test_an_aborted_upload_leaves_no_object(buckets: Buckets) -> None:
    with clients_of(buckets) as (_, production):
        upload_id = read_text(ask(production, s3_request.create_multipart_upload("k")).body, "UploadId")
        assert upload_id
        assert ask(production, s3_request.abort_multipart_upload("k", upload_id=upload_id)).error is None
        assert isinstance(ask(production, HEAD).error, ObjectNotFound)


def test_every_one_of_many_requests_is_answered_once(moto_buckets: Buckets) -> None:
    answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
    with clients_of(moto_buckets) as (_, production):
        for number in range(200):
            request = s3_request.head_object("production", f"missing-{number}")
            production.send(request, lambda answer, number=number: answers.put((number, answer)))
        received = [answers.get(timeout=WAIT_SECONDS) for _ in range(200)]
    assert sorted(number for number, _ in received) == list(range(200))
    assert all(isinstance(answer.error, ObjectNotFound) for _, answer in received)
    assert answers.empty()


# Against a server that misbehaves.


def test_throttling_is_sat_out() -> None:
    with facing(*[refuse(503, "SlowDown")] * 3, answer(200)) as (client, server):
        assert ask(client, COPY).error is None
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("request_", "behaviour", "expected"),
    [
        (COPY, refuse(503, "SlowDown"), Throttled),
        (HEAD, answer(503), Throttled),
        (COPY, refuse(429, "TooManyRequests"), Throttled),
        (COPY, refuse(500, "InternalError"), ServerFault),
        (COPY, answer(502, b"<html>bad gateway</html>"), ServerFault),
        (COPY, answer(504, b"<html>gateway timeout</html>"), ServerFault),
        (COPY, refuse(501, "NotImplemented"), ObjectRejected),
        (COPY, answer(200, error_body("InternalError")), ServerFault),
        (COPY, answer(200, error_body("SlowDown")), Throttled),
        (COPY, answer(200, error_body("AccessDenied")), AccessDenied),
        (COPY, answer(200, b"\n\n" + error_body("NoSuchKey")), ObjectNotFound),
        (COPY, refuse(404, "NoSuchBucket"), BucketNotFound),
        (COPY, refuse(412, "PreconditionFailed"), PreconditionFailed),
        (COPY, refuse(409, "ConditionalRequestConflict"), PreconditionFailed),
        (COPY, refuse(400, "ExpiredToken"), AccessDenied),
        (COPY, refuse(403, "RequestTimeTooSkewed"), AccessDenied),
        (COPY, answer(301, error_body("PermanentRedirect"), Location="http://127.0.0.1:1/"), ObjectRejected),
        (GET, answer(404, b"<html>nobody is here</html>"), ServerFault),
        (HEAD, answer(404), ObjectNotFound),
        (HEAD, answer(403), AccessDenied),
        (COPY, reset, Unreachable),
        (COPY, hang_up, Unreachable),
        (GET, stop_halfway, Unreachable),
        (COPY, babble, ServerFault),
    ],
)
def test_each_misbehaviour_has_its_class(request_: Request, behaviour: Behaviour, expected: type[ObjectError]) -> None:
    with facing(behaviour) as (client, _):
        assert type(ask(client, request_).error) is expected


def test_an_object_whose_content_looks_like_an_error_is_read_as_it_is() -> None:
    with facing(answer(200, error_body("SlowDown"))) as (client, _):
        got = ask(client, GET)
    assert (got.error, got.body) == (None, error_body("SlowDown"))


def test_a_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    with facing(keep_silent, deadline=timedelta(seconds=0.3)) as (client, _):
        got = ask(client, COPY)
    assert isinstance(got.error, TimedOut)
    assert "CopyObject" in str(got.error)


def test_a_deadline_ends_a_long_wait_between_retries() -> None:
    settings = {"deadline": timedelta(seconds=0.5), "backoff": timedelta(seconds=60)}
    with facing(refuse(503, "SlowDown"), **settings) as (client, _):
        assert isinstance(ask(client, COPY).error, TimedOut)
        client.close(timedelta(seconds=0.1))


def test_cancelling_ends_a_long_wait_between_retries() -> None:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    with facing(refuse(503, "SlowDown"), backoff=timedelta(seconds=60)) as (client, server):
        client.send(COPY, answers.put)
        wait_for(lambda: server.requests)
        client.cancel_all()
        assert isinstance(answers.get(timeout=WAIT_SECONDS).error, Cancelled | Throttled)
        client.close(timedelta(seconds=0.1))


def test_a_slow_request_does_not_take_others_with_it() -> None:
    with facing(keep_silent, answer(200), deadline=timedelta(seconds=2)) as (client, server):
        slow: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        client.send(COPY, slow.put)
        wait_for(lambda: server.requests)
        assert ask(client, HEAD).error is None
        assert isinstance(slow.get(timeout=WAIT_SECONDS).error, TimedOut)


def test_nobody_listening_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        side = Side("production", "b", endpoint_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
    with opened(side) as client:
        assert isinstance(ask(client, HEAD).error, Unreachable)
        assert client.last_answer is None


def test_only_an_answer_of_any_status_counts_as_one() -> None:
    with facing(reset) as (client, _):
        ask(client, COPY)
        assert client.last_answer is None
    for behaviour in (answer(404), refuse(503, "SlowDown"), answer(200)):
        with facing(behaviour) as (client, _):
            ask(client, COPY)
            assert client.last_answer is not None


def test_each_client_reaches_its_own_port() -> None:
    with facing(answer(200)) as (one, first), facing(answer(200)) as (other, second):
        for _ in range(3):
            ask(one, HEAD)
            ask(other, COPY)
    assert {line.split()[0] for line in first.request_lines} == {"HEAD"}
    assert {line.split()[0] for line in second.request_lines} == {"PUT"}


def test_the_bucket_is_in_the_path_behind_the_endpoints_own() -> None:
    with StandIn(answer(200)) as server:
        endpoint = resolve_endpoint(side_of(server))
        with opened(side_of(server)) as client:
            ask(client, s3_request.head_object("production", "/a b"))
        with opened(side_of(server), endpoint=replace(endpoint, base_path="/s3")) as client:
            ask(client, HEAD)
    assert server.request_lines == ["HEAD /bucket//a%20b HTTP/1.1", "HEAD /s3/bucket/k HTTP/1.1"]


def test_cancelling_answers_everything_in_flight() -> None:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    with facing(keep_silent) as (client, server):
        for _ in range(20):
            client.send(COPY, answers.put)
        wait_for(lambda: len(server.requests) == 8)
        client.cancel_all()
        received = [answers.get(timeout=WAIT_SECONDS) for _ in range(20)]
    assert {type(answer.error) for answer in received} == {Cancelled}


def test_closing_answers_what_is_in_flight_and_refuses_what_comes_later() -> None:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    with facing(keep_silent) as (client, server):
        client.send(COPY, answers.put)
        wait_for(lambda: server.requests)
        client.close()
        assert isinstance(answers.get_nowait().error, Cancelled)
        assert isinstance(ask(client, COPY).error, Cancelled)
        client.close()


def test_answers_never_come_from_inside_send() -> None:
    callers: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
    broken = replace(COPY, headers=(("x-amz-meta-a", "one\r\ntwo"),))
    with facing(answer(200)) as (client, _):
        for request in (HEAD, broken, replace(HEAD, side="legacy")):
            client.send(request, lambda _: callers.put(threading.current_thread()))
            assert callers.get(timeout=WAIT_SECONDS) is not threading.current_thread()


def test_a_request_that_cannot_be_sent_is_answered_too() -> None:
    with facing(answer(200)) as (client, server):
        assert isinstance(ask(client, replace(COPY, headers=(("a", "one\r\ntwo"),))).error, ObjectRejected)
        assert isinstance(ask(client, replace(COPY, headers=(("a", "\ud800"),))).error, ServerFault)
    assert server.requests == []


def test_nothing_is_ever_written_to_the_legacy_side() -> None:
    with StandIn(answer(200)) as server, opened(side_of(server, "legacy")) as client:
        assert isinstance(ask(client, replace(COPY, side="legacy")).error, ObjectRejected)
        assert isinstance(ask(client, COPY).error, ObjectRejected)
        assert ask(client, s3_request.head_object("legacy", "k")).error is None
    assert server.request_lines == ["HEAD /bucket/k HTTP/1.1"]


def test_an_answer_beyond_the_bound_is_an_error() -> None:
    with facing(answer(200, b"x" * 1001), max_body_bytes=1000) as (client, _):
        got = ask(client, GET)
    assert isinstance(got.error, ObjectRejected)
    assert got.error.code == "AnswerTooLong"


def test_an_answer_at_the_bound_is_taken() -> None:
    with facing(answer(200, b"x" * 1000), max_body_bytes=1000) as (client, _):
        assert ask(client, GET).body == b"x" * 1000


def test_a_failing_callback_is_neither_lost_nor_contagious(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Answer) -> None:
        raise ZeroDivisionError("in the callback")

    with facing(answer(200)) as (client, server):
        client.send(HEAD, fail)
        wait_for(lambda: server.requests)
        assert ask(client, HEAD).error is None
        with pytest.raises(ZeroDivisionError, match="in the callback"):
            client.close()
        assert "ZeroDivisionError" in caplog.text
        client._traffic.callback_fault = None


def test_a_stuck_event_loop_does_not_hold_answers_back_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_client, "GRACE", timedelta(0))
    stuck, release = threading.Event(), threading.Event()

    def block(_: Answer) -> None:
        stuck.set()
        release.wait(WAIT_SECONDS)

    with facing(answer(200), deadline=timedelta(seconds=2)) as (client, _):
        client.send(HEAD, block)
        assert stuck.wait(WAIT_SECONDS)
        try:
            assert isinstance(ask(client, HEAD).error, TimedOut)
        finally:
            release.set()


# TLS and credentials.


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 and its key, each into a file."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    key_bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    certificate_path, key_path = folder / "certificate.pem", folder / "key.pem"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(key_bytes)
    return certificate_path, key_path


def test_https_trusts_the_bundle_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with StandIn(answer(200), tls=tls) as server:
        endpoint = replace(resolve_endpoint(side_of(server)), ca_bundle=None)
        with opened(side_of(server), endpoint=replace(endpoint, ca_bundle=str(certificate))) as client:
            assert ask(client, HEAD).error is None
        # s2n takes 10 to 30 s to admit that it trusts nobody: the deadline may come first.
        with opened(side_of(server), endpoint=endpoint, deadline=timedelta(seconds=0.5)) as client:
            assert isinstance(ask(client, HEAD).error, Unreachable | TimedOut)
            client.close(timedelta(seconds=0.1))
    assert len(server.requests) == 1


def expiring(renew: Callable[[], dict[str, str]], *, valid: timedelta) -> RefreshableCredentials:
    expiry = (datetime.now(UTC) + valid).isoformat()
    first = {"access_key": "FIRST", "secret_key": "s", "token": "t1", "expiry_time": expiry}
    return RefreshableCredentials.create_from_metadata(first, refresh_using=renew, method="test")


@pytest.fixture
def _renewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowferry.credentials.CHECK_EVERY", timedelta(milliseconds=20))


@pytest.mark.usefixtures("_renewed_often")
def test_renewed_credentials_sign_the_next_request() -> None:
    names = iter(["SECOND", "THIRD"])

    def renew() -> dict[str, str]:
        expiry = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        return {"access_key": next(names), "secret_key": "s", "token": "t2", "expiry_time": expiry}

    credentials = expiring(renew, valid=timedelta(hours=1))
    with facing(answer(200), credentials=credentials) as (client, server):
        ask(client, HEAD)
        credentials._expiry_time = datetime.now(UTC) + timedelta(seconds=30)
        wait_for(lambda: ask(client, HEAD).error is None and "Credential=SECOND/" in server.requests[-1])
    assert "Credential=FIRST/" in server.requests[0]
    assert "x-amz-security-token: t2" in server.requests[-1].lower()


@pytest.mark.usefixtures("_renewed_often")
def test_credentials_that_cannot_be_renewed_end_requests_without_a_hang() -> None:
    def renew() -> dict[str, str]:
        raise OSError("the metadata service has the secret s3cr3t")

    credentials = expiring(renew, valid=timedelta(hours=1))
    with facing(answer(200), credentials=credentials) as (client, _):
        assert ask(client, HEAD).error is None
        credentials._expiry_time = datetime.now(UTC) - timedelta(seconds=1)
        wait_for(lambda: ask(client, HEAD).error is not None)
        error = ask(client, HEAD).error
        assert isinstance(error, CredentialsUnavailable)
        assert "s3cr3t" not in str(error)


FORK = """
import os, queue, sys
from datetime import timedelta
from botocore.credentials import Credentials
from rowferry import s3_request
from rowferry.endpoint import resolve_endpoint
from rowferry.object_client import ObjectClient
from rowferry.plan import Side

side = Side("production", "bucket", endpoint_url=sys.argv[1])

def ask_once():
    client = ObjectClient(side, Credentials("AK", "SK"), endpoint=resolve_endpoint(side), max_in_flight=2,
                          deadline=timedelta(seconds=20))
    answers = queue.SimpleQueue()
    client.send(s3_request.head_object("production", "k"), answers.put)
    answer = answers.get(timeout=30)
    client.close()
    return answer.error is None

assert ask_once()
child = os.fork()
if child == 0:
    os._exit(0 if ask_once() else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_can_make_a_client_of_its_own() -> None:
    with StandIn(answer(200)) as server:
        command = [sys.executable, "-W", "ignore", "-c", FORK, server.endpoint_url]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        try:
            _, words = process.communicate(timeout=WAIT_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    assert process.returncode == 0, words
    assert len(server.requests) == 2
