"""Objects that are written while they are read: whatever happens on the way, what stands there is what was to be."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rowferry.batch import Outcome
from rowferry.errors import ObjectDamaged, ObjectError, ServerFault, Throttled, Unreachable
from rowferry.http.connection import Connection
from rowferry.plan import OnConflict
from rowferry.s3.access.credentials import CredentialSnapshot
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES
from rowferry_lab.servers.fake_s3.http import Request
from rowferry_lab.servers.fake_s3.store import compute_md5 as md5
from rowferry_worker.copying import one_put
from rowferry_worker.copying.stream_copy import WHOLE_BYTES
from rowferry_worker.objects import digests
from support.processes.processes import wait_for
from support.s3.copies import NEW, OLD
from support.s3.fake_buckets import HELD, headers_of, refuse
from support.s3.pipes import Deviation, Pipe, corrupt, cut_off, flip, keep

SMALL = b"small"
BODY = bytes(range(256)) * 4096
"""1 MiB: it is piped."""
KMS = {"x-amz-server-side-encryption": "aws:kms"}


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A kind server, with an object to copy; the worker trusts the digests that are confirmed."""
    pipe = Pipe(BODY)
    with pipe.serving():
        pipe.support.confirms_digests = True
        yield pipe
        wait_for(lambda: not pipe.clients["legacy"]._pool._streaming)
        pipe.assert_nothing_open()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the bodies that were hashed as a whole."""
    sizes: list[int] = []
    monkeypatch.setattr(one_put, "hash_body", lambda body: (sizes.append(len(body)), digests.hash_body(body))[1])
    return sizes


def refuse_unread(pipe: Pipe, *statuses: int) -> None:
    """Have the next PUTs refused by these statuses before their bodies are read."""
    left = list(statuses)

    def refuse_put(request: Request) -> Response | None:
        return refuse(left.pop(0), "AsTold") if request.method == "PUT" and left else None

    pipe.interfere_early = refuse_put


@pytest.mark.parametrize("body", [b"", SMALL, b"x" * WHOLE_BYTES, b"x" * (WHOLE_BYTES + 1), BODY])
@pytest.mark.parametrize("trusts", [True, None, False])
def test_an_object_arrives_with_its_digest_announced(pipe: Pipe, body: bytes, trusts: bool | None) -> None:
    pipe.support.confirms_digests = trusts
    pipe.put("legacy", OLD, body)
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == body
    assert pipe.seen[-1].header(b"content-md5") is not None
    assert pipe.recorded == ["GetObject ok", "PutObject ok"]


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_what_the_server_has_confirmed_once_is_not_hashed_here_again(
    pipe: Pipe, body: bytes, hashed: list[int]
) -> None:
    pipe.support.confirms_digests = None
    for _ in range(3):
        pipe.put("legacy", OLD, body)
        pipe.copy()
        del pipe.production[NEW]
    assert len(hashed) == (1 if body == SMALL else 0)
    assert pipe.support.confirms_digests is True


def send_more(pipe: Pipe, request: Request) -> Response:
    """Send what belongs to no response behind the object."""
    pipe.send_first(pipe.legacy[request.key].size)
    pipe.connection.write(b"more")
    return HELD


def send_less(pipe: Pipe, request: Request) -> Response:
    """Announce an object that is shorter."""
    found = pipe.legacy[request.key]
    return Response(200, headers_of(found), found.body[:-1])


def refuse_keys(pipe: Pipe, _request: Request) -> Response:
    pipe.clients["production"]._refusals._reload = lambda: CredentialSnapshot("NEW", "s", None)
    return refuse(403, "ExpiredToken")


IN_SPITE: dict[str, tuple[list[Deviation], list[Deviation], int]] = {
    "a read that is cut off": ([cut_off], [], 2),
    "writes that are cut off": ([], [cut_off, cut_off], 3),
    "a body longer than announced": ([send_more], [], 1),
    "keys that were changed meanwhile": ([], [refuse_keys], 2),
}
"""What befalls reads and writes, and how often the object is read."""


@pytest.mark.parametrize("trusts", [True, None])
@pytest.mark.parametrize("fault", IN_SPITE)
def test_an_object_arrives_in_spite_of(pipe: Pipe, fault: str, trusts: bool | None) -> None:
    of_legacy, of_production, reads = IN_SPITE[fault]
    pipe.support.confirms_digests = trusts
    pipe.deviations["legacy"] += of_legacy
    pipe.deviations["production"] += of_production
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == BODY
    assert (pipe.methods("legacy"), pipe.recorded[-1]) == (["GET"] * reads, "PutObject ok")
    assert pipe.support.confirms_digests is not False


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_damaged_bytes_are_refused_by_the_server_and_read_again(pipe: Pipe, body: bytes) -> None:
    pipe.put("legacy", OLD, body)
    pipe.deviations["legacy"] += [corrupt]
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == body
    assert pipe.support.confirms_digests is True


NEVER: dict[str, tuple[Deviation, type[ObjectError], str]] = {
    "reads that are always cut off": (cut_off, Unreachable, "ConnectionLost"),
    "bytes that are always damaged": (corrupt, ObjectDamaged, "DigestMismatch: the bytes read"),
    "an object that is announced shorter": (send_less, ObjectDamaged, "Mismatch"),
}


@pytest.mark.parametrize("body", [SMALL, BODY])
@pytest.mark.parametrize("trusts", [True, None])
@pytest.mark.parametrize("fault", NEVER)
def test_nothing_is_written_where_no_read_is_whole(pipe: Pipe, fault: str, body: bytes, trusts: bool | None) -> None:
    deviation, error, words = NEVER[fault]
    pipe.support.confirms_digests = trusts
    pipe.put("legacy", OLD, body)
    pipe.deviations["legacy"] += [deviation] * 9
    with pytest.raises(error, match=words) as caught:
        pipe.copy()
    assert (caught.value.side, caught.value.where) == ("legacy", "GetObject legacy") or error is ObjectDamaged
    assert pipe.written is None


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_a_write_that_is_refused_before_it_is_read_is_made_again(pipe: Pipe, body: bytes) -> None:
    pipe.put("legacy", OLD, body)
    refuse_unread(pipe, 503, 500)
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == body


def test_a_write_that_finds_no_connection_goes_on_with_the_same_read(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pipe.clients["production"]._pool
    acquire = pool.acquire
    refusals = [Unreachable("ConnectionRefused", "as told")] * 2

    async def refuse_first(**asked: bool) -> Connection:
        if refusals:
            raise refusals.pop()
        return await acquire(**asked)

    monkeypatch.setattr(pool, "acquire", refuse_first)
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert (pipe.written, pipe.methods("legacy")) == (BODY, ["GET"])


def test_a_write_that_is_refused_for_good_ends_with_the_refusal(pipe: Pipe) -> None:
    refuse_unread(pipe, *[503] * 9)
    with pytest.raises(Throttled) as caught:
        pipe.copy()
    assert caught.value.where == "PutObject production"
    assert pipe.written is None


@pytest.mark.parametrize(("existing", "outcome"), [(BODY, Outcome.KEPT), (flip(BODY), Outcome.CONFLICT)])
def test_an_object_that_stands_there_is_not_overwritten(pipe: Pipe, existing: bytes, outcome: Outcome) -> None:
    pipe.put("production", NEW, existing)
    assert pipe.copy().outcome is outcome
    assert pipe.written == existing


def test_an_object_that_appears_meanwhile_is_not_overwritten(pipe: Pipe) -> None:
    def write_first(pipe: Pipe, request: Request) -> None:
        pipe.put("production", request.key, b"the application's")

    pipe.deviations["production"] += [write_first]
    assert pipe.copy().outcome is Outcome.CONFLICT
    assert pipe.written == b"the application's"


def test_an_object_that_is_rewritten_between_two_reads_is_not_patched_together(pipe: Pipe) -> None:
    def rewrite(pipe: Pipe, request: Request) -> Response:
        response = cut_off(pipe, request)
        pipe.put("legacy", OLD, flip(BODY))
        return response

    pipe.deviations["legacy"] += [rewrite]
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pipe.copy()
    assert pipe.written is None
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == flip(BODY)


@pytest.mark.parametrize("body", [SMALL, BODY])
@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_damaged_object_that_the_server_took_is_replaced_and_its_word_taken_no_more(
    pipe: Pipe, body: bytes, side: str, hashed: list[int]
) -> None:
    """It does not check Content-MD5; its ETag tells. Left alone, the damaged object would pass for another one's."""
    pipe.deviate(checks_md5=False)
    pipe.put("legacy", OLD, body)
    pipe.deviations[side] += [corrupt]
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == body
    assert pipe.support.confirms_digests is False
    pipe.deviations["legacy"] += [corrupt]
    del pipe.production[NEW]
    with pytest.raises(ObjectDamaged):
        pipe.copy()
    assert pipe.written is None
    assert len(hashed) == (2 if body == SMALL else 0)


@pytest.mark.parametrize("on_conflict", ["fail", "keep"])
def test_a_damaged_object_whose_repair_failed_is_replaced_by_the_next_attempt(
    pipe: Pipe, on_conflict: OnConflict
) -> None:
    """Until the digest is refuted nobody knows that it is damaged, and the second transfer may not come to that."""
    pipe.options = replace(pipe.options, on_conflict=on_conflict)
    pipe.deviate(checks_md5=False)
    pipe.deviations["production"] += [corrupt]
    pipe.deviations["legacy"] += [keep, *[cut_off] * 2 * TRIES]
    with pytest.raises(ObjectError):
        pipe.copy()
    assert pipe.written == flip(BODY)
    pipe.deviations["legacy"].clear()
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == BODY


def test_a_damaged_object_in_whose_place_another_was_put_is_left_alone(pipe: Pipe) -> None:
    def overwrite(pipe: Pipe, request: Request) -> Response:
        pipe.put("production", request.key, b"the application's")
        return Response(200, {"etag": f'"{md5(flip(request.body))}"'})

    pipe.deviations["production"] += [overwrite]
    with pytest.raises(ServerFault, match="ObjectChanged"):
        pipe.copy()
    assert pipe.written == b"the application's"
    assert pipe.copy().outcome is Outcome.CONFLICT


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_a_server_whose_etags_stop_to_be_digests_is_not_believed(pipe: Pipe, body: bytes) -> None:
    def name_by_size(pipe: Pipe, request: Request) -> Response:
        etag = f"W{len(request.body)}"
        pipe.put("production", request.key, request.body, etag=etag)
        return Response(200, {"etag": f'"{etag}"'})

    pipe.put("legacy", OLD, body)
    pipe.deviations["production"] += [name_by_size] * 2
    pipe.deviate(checks_md5=False)
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert (pipe.written, pipe.support.confirms_digests) == (body, False)
    del pipe.production[NEW]
    pipe.deviations["legacy"] += [corrupt] * 9
    with pytest.raises(ObjectDamaged):
        pipe.copy()
    assert pipe.written is None


@pytest.mark.parametrize("body", [SMALL, BODY])
def test_an_etag_that_only_looks_like_a_digest_is_told_from_a_damaged_read(pipe: Pipe, body: bytes) -> None:
    pipe.put("legacy", OLD, body, etag=md5(b"odd" + body))
    with pytest.raises(ObjectDamaged, match="DigestMismatch: the bytes read"):
        pipe.copy()
    assert pipe.written is None


@pytest.mark.parametrize("etag", ["0123-2", md5(BODY)])
def test_an_object_whose_md5_is_not_known_is_hashed_before_it_is_written(
    pipe: Pipe, etag: str, hashed: list[int]
) -> None:
    pipe.put("legacy", OLD, BODY, headers=KMS if "-" not in etag else {}, etag=etag)
    pipe.deviations["production"] += [corrupt]
    with pytest.raises(ObjectDamaged):
        pipe.copy()
    assert hashed == [len(BODY)]
    assert pipe.written is None
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == BODY


def test_the_object_that_is_probed_with_is_hashed(pipe: Pipe) -> None:
    pipe.support._supported.clear()
    pipe.deviations["legacy"] += [keep, corrupt]
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.written == BODY
    wait_for(lambda: pipe.methods("production") == ["HEAD", "PUT", "HEAD", "PUT cut off"])


def test_a_server_that_ignores_the_condition_gets_a_look_before_each_try(pipe: Pipe) -> None:
    pipe.support._supported["PutObject"] = False
    pipe.deviations["production"] += [cut_off]
    assert pipe.copy().outcome is Outcome.MIGRATED
    assert pipe.methods("production") == ["HEAD", "PUT", "HEAD", "PUT"]
