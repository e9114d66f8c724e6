"""Objects that are written while they are read: whatever happens on the way, what stands there is what was to be."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowferry.batch import Outcome
from rowferry.errors import Cancelled, ObjectDamaged, ObjectError, ServerFault, Throttled, TimedOut, Unreachable
from rowferry.http import event_loop
from rowferry_worker.objects import digests, one_put, transfer
from rowferry_worker.objects.copy import copy_object
from support.processes.processes import wait_for
from support.s3.piping_servers import NEW, OLD, SECONDS, Handler, Pair, flip, md5, running_pair
from support.s3.tls import Authority, serving_context

SMALL = b"small"
BODY = bytes(range(256)) * 4096
"""1 MiB: it is piped."""
KMS = {"x-amz-server-side-encryption": "aws:kms"}


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two kind servers, with an object to copy; the worker trusts the digests that are confirmed."""
    with running_pair() as pair:
        pair.legacy.put(OLD, BODY)
        pair.support.confirms_digests = True
        yield pair
        wait_for(lambda: not pair.clients["legacy"]._pool._streaming)
        pair.assert_nothing_open()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the bodies that were hashed as a whole."""
    sizes: list[int] = []
    monkeypatch.setattr(one_put, "hash_body", lambda body: (sizes.append(len(body)), digests.hash_body(body))[1])
    return sizes


def tag(body: bytes) -> dict[str, str]:
    return {"ETag": f'"{md5(body)}"'}


def cut_off(handler: Handler, body: bytes) -> None:
    """Send, or take, half of the body and close."""
    if handler.command == "GET":
        handler.respond(200, body[: len(body) // 2], tag(body), length=len(body))
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def corrupt(_: Handler, body: bytes) -> bytes:
    return flip(body)


def keep(_: Handler, body: bytes) -> bytes:
    return body


@pytest.mark.parametrize("body", [b"", SMALL, b"x" * transfer.WHOLE_BYTES, b"x" * (transfer.WHOLE_BYTES + 1), BODY])
@pytest.mark.parametrize("trusts", [True, None, False])
def test_an_object_arrives_with_its_digest_announced(pair: Pair, body: bytes, trusts: bool | None) -> None:
    pair.support.confirms_digests = trusts
    pair.legacy.put(OLD, body)
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == body
    assert "Content-MD5" in pair.production.put_headers[0]
    assert pair.recorded == ["GetObject ok", "PutObject ok"]


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_what_the_server_has_confirmed_once_is_not_hashed_here_again(
    pair: Pair, body: bytes, hashed: list[int]
) -> None:
    pair.support.confirms_digests = None
    for _ in range(3):
        pair.legacy.put(OLD, body)
        pair.copy()
        del pair.production.objects[NEW]
    assert len(hashed) == (1 if body == SMALL else 0)
    assert pair.support.confirms_digests is True


def test_an_object_keeps_its_encoding_and_its_bytes(pair: Pair) -> None:
    pair.legacy.put(OLD, BODY, **{"Content-Encoding": "gzip", "x-amz-meta-author": "me"})
    assert pair.copy().outcome is Outcome.MIGRATED
    headers = pair.production.put_headers[0]
    assert (headers["content-encoding"], headers["x-amz-meta-author"], pair.written) == ("gzip", "me", BODY)


@pytest.mark.parametrize("trusts", [True, None])
def test_a_read_that_is_cut_off_writes_nothing_and_is_made_again(pair: Pair, trusts: bool | None) -> None:
    pair.support.confirms_digests = trusts
    pair.legacy.deviations += [cut_off]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY
    wait_for(lambda: "PUT cut off" in pair.production.seen)
    assert pair.legacy.seen == ["GET", "GET"]
    assert pair.recorded == ["GetObject ok", "GetObject ok", "PutObject ok"]


def test_reads_that_are_always_cut_off_write_nothing(pair: Pair) -> None:
    pair.legacy.deviations += [cut_off] * 9
    with pytest.raises(Unreachable) as caught:
        pair.copy()
    assert (caught.value.side, caught.value.where) == ("legacy", "GetObject legacy")
    assert pair.written is None


@pytest.mark.parametrize("trusts", [True, None])
def test_a_write_that_is_cut_off_is_made_again_with_a_new_read(pair: Pair, trusts: bool | None) -> None:
    pair.support.confirms_digests = trusts
    pair.production.deviations += [cut_off, cut_off]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY
    assert pair.legacy.seen == ["GET"] * 3


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_a_write_that_is_refused_before_it_is_read_is_made_again(pair: Pair, body: bytes) -> None:
    pair.legacy.put(OLD, body)
    pair.production.refusals += [503, 500]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == body


def test_a_write_that_is_refused_for_good_ends_with_the_refusal(pair: Pair) -> None:
    pair.production.refusals += [503] * 9
    with pytest.raises(Throttled) as caught:
        pair.copy()
    assert caught.value.where == "PutObject production"
    assert pair.written is None


@pytest.mark.parametrize(("existing", "outcome"), [(BODY, Outcome.KEPT), (flip(BODY), Outcome.CONFLICT)])
def test_an_object_that_stands_there_is_not_overwritten(pair: Pair, existing: bytes, outcome: Outcome) -> None:
    pair.production.put(NEW, existing)
    assert pair.copy().outcome is outcome
    assert pair.written == existing


def test_an_object_that_appears_meanwhile_is_not_overwritten(pair: Pair) -> None:
    def write_first(handler: Handler, body: bytes) -> bytes:
        handler.store.put(NEW, b"the application's")
        return body

    pair.production.deviations += [write_first]
    assert pair.copy().outcome is Outcome.CONFLICT
    assert pair.written == b"the application's"


def test_an_object_that_is_rewritten_between_two_reads_is_not_patched_together(pair: Pair) -> None:
    def rewrite(handler: Handler, body: bytes) -> None:
        pair.legacy.put(OLD, flip(BODY))
        cut_off(handler, body)

    pair.legacy.deviations += [rewrite]
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pair.copy()
    assert pair.written is None
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == flip(BODY)


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_damaged_bytes_are_refused_by_the_server_and_read_again(pair: Pair, body: bytes) -> None:
    pair.legacy.put(OLD, body)
    pair.legacy.deviations += [corrupt]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == body
    assert pair.support.confirms_digests is True


@pytest.mark.parametrize("body", [SMALL, BODY])
@pytest.mark.parametrize("trusts", [True, None])
def test_bytes_that_are_always_damaged_are_never_written(pair: Pair, body: bytes, trusts: bool | None) -> None:
    pair.support.confirms_digests = trusts
    pair.legacy.put(OLD, body)
    pair.legacy.deviations += [corrupt] * 9
    with pytest.raises(ObjectDamaged, match="DigestMismatch: the bytes read"):
        pair.copy()
    assert pair.written is None


@pytest.mark.parametrize("body", [SMALL, BODY])
@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_damaged_object_that_the_server_took_is_replaced_and_its_word_taken_no_more(
    pair: Pair, body: bytes, side: str, hashed: list[int]
) -> None:
    """It does not check Content-MD5; its ETag tells. Left alone, the damaged object would pass for another one's."""
    pair.production.checks_md5 = False
    pair.legacy.put(OLD, body)
    (pair.legacy if side == "legacy" else pair.production).deviations += [corrupt]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == body
    assert pair.support.confirms_digests is False
    pair.legacy.deviations += [corrupt]
    del pair.production.objects[NEW]
    with pytest.raises(ObjectDamaged):
        pair.copy()
    assert pair.written is None
    assert len(hashed) == (2 if body == SMALL else 0)


def test_a_damaged_object_in_whose_place_another_was_put_is_left_alone(pair: Pair) -> None:
    def overwrite(handler: Handler, body: bytes) -> None:
        handler.store.put(NEW, b"the application's")
        handler.respond(200, b"", tag(flip(body)))

    pair.production.deviations += [overwrite]
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pair.copy()
    assert pair.written == b"the application's"
    assert pair.copy().outcome is Outcome.CONFLICT


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_a_server_whose_etags_stop_to_be_digests_is_not_believed(pair: Pair, body: bytes) -> None:
    pair.legacy.put(OLD, body)
    pair.production.etag_of = lambda body: f"W{len(body)}"
    pair.production.checks_md5 = False
    assert pair.copy().outcome is Outcome.MIGRATED
    assert (pair.written, pair.support.confirms_digests) == (body, False)
    del pair.production.objects[NEW]
    pair.legacy.deviations += [corrupt] * 9
    with pytest.raises(ObjectDamaged):
        pair.copy()
    assert pair.written is None


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_an_etag_that_only_looks_like_a_digest_is_told_from_a_damaged_read(pair: Pair, body: bytes) -> None:
    pair.legacy.etag_of = lambda body: md5(b"odd" + body)
    pair.legacy.put(OLD, body)
    with pytest.raises(ObjectDamaged, match="DigestMismatch: the bytes read"):
        pair.copy()
    assert pair.written is None


@pytest.mark.parametrize("etag", ["0123-2", md5(BODY)])
def test_an_object_whose_md5_is_not_known_is_hashed_before_it_is_written(
    pair: Pair, etag: str, hashed: list[int]
) -> None:
    pair.legacy.objects[OLD] = (BODY, {"ETag": f'"{etag}"', **(KMS if "-" not in etag else {})})
    pair.production.deviations += [corrupt]
    with pytest.raises(ObjectDamaged):
        pair.copy()
    assert hashed == [len(BODY)]
    assert pair.written is None
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY


def test_the_object_that_is_probed_with_is_hashed(pair: Pair) -> None:
    pair.support._supported.clear()
    pair.legacy.deviations += [keep, corrupt]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY
    wait_for(lambda: pair.production.seen == ["HEAD", "PUT", "HEAD", "PUT cut off"])


def test_a_server_that_ignores_the_condition_gets_a_look_before_each_try(pair: Pair) -> None:
    pair.support._supported["PutObject"] = False
    pair.production.deviations += [cut_off]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.production.seen == ["HEAD", "PUT", "HEAD", "PUT"]


def test_a_body_longer_than_announced_is_no_object(pair: Pair) -> None:
    """What comes on top belongs to no response; the connection is not used again."""

    def send_more(handler: Handler, body: bytes) -> None:
        handler.respond(200, body + b"more", tag(body), length=len(body))

    pair.legacy.deviations += [send_more]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY


def test_a_body_that_is_announced_shorter_than_the_object_is_refused(pair: Pair) -> None:
    def send_less(handler: Handler, body: bytes) -> None:
        handler.respond(200, body[:-1], tag(body))

    pair.legacy.deviations += [send_less] * 3
    with pytest.raises(ObjectDamaged):
        pair.copy()
    assert pair.written is None


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_cancelled_copy_leaves_no_object_no_stream_and_no_memory_behind(pair: Pair, side: str) -> None:
    halted = asyncio.Event()

    def halt(handler: Handler, body: bytes) -> None:
        if handler.command == "GET":
            handler.respond(200, body[:-1], tag(body), length=len(body))
        event_loop.call_soon(halted.set)
        handler.connection.recv(1)
        handler.close_connection = True

    async def cancel() -> None:
        copying = asyncio.create_task(copy_object(pair.requests(), pair.options, OLD, NEW))
        await halted.wait()
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying

    (pair.legacy if side == "legacy" else pair.production).deviations += [halt]
    event_loop.run(cancel(), SECONDS)
    pair.assert_nothing_open()
    assert pair.written is None
    assert pair.copy().outcome is Outcome.MIGRATED


def test_copies_end_with_their_client(pair: Pair) -> None:
    def close(handler: Handler, body: bytes) -> None:
        handler.respond(200, body[:-1], tag(body), length=len(body))
        pair.clients["legacy"].close()

    pair.legacy.deviations += [close]
    with pytest.raises(Cancelled):
        pair.copy()
    assert pair.written is None


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_silent_server_is_given_up_at_the_deadline_and_named(side: str) -> None:
    def fall_silent(handler: Handler, body: bytes) -> None:
        if handler.command == "GET":
            handler.respond(200, body[:-1], tag(body), length=len(body))
        handler.connection.recv(1)
        handler.close_connection = True

    with running_pair() as pair:
        pair.clients[side]._deadlines.seconds = 0.5
        pair.legacy.put(OLD, BODY)
        (pair.legacy if side == "legacy" else pair.production).deviations += [fall_silent]
        with pytest.raises(TimedOut) as caught:
            pair.copy()
        assert caught.value.side == side
        assert pair.written is None
        pair.assert_nothing_open()


def test_corrected_clocks_and_keys_send_the_body_once_more(pair: Pair) -> None:
    def refuse_clock(handler: Handler, body: bytes) -> None:
        del body
        handler.date_time_string = lambda *_: "Sun, 22 Nov 2026 00:00:00 GMT"  # type: ignore[method-assign]
        handler.refuse(403, "RequestTimeTooSkewed")

    pair.production.deviations += [refuse_clock]
    assert pair.copy().outcome is Outcome.MIGRATED
    assert pair.written == BODY
    assert pair.legacy.seen == ["GET", "GET"]


def test_objects_are_piped_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "authority")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.bundle))
    with running_pair(serving_context(authority.sign("server"))) as pair:
        large = BODY * 8
        pair.legacy.put(OLD, large)
        for _ in range(3):
            assert pair.copy().outcome is Outcome.MIGRATED
            assert pair.written == large
            del pair.production.objects[NEW]
        pair.legacy.deviations += [cut_off]
        assert pair.copy().outcome is Outcome.MIGRATED
        pair.assert_nothing_open()


def test_many_copies_at_once_share_few_connections(pair: Pair) -> None:
    """More copies than connections, each with a read and a write open: none waits for the others for good."""

    async def copy_all() -> list[object]:
        copies = (copy_object(pair.requests(), pair.options, OLD, f"avatar/{n}.png") for n in range(40))
        return await asyncio.gather(*copies, return_exceptions=True)

    outcomes = event_loop.run(copy_all(), SECONDS)
    assert [result for result in outcomes if isinstance(result, ObjectError | Exception)] == []
    assert {body for body, _ in pair.production.objects.values()} == {BODY}
    assert len(pair.production.objects) == 40
