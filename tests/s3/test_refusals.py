"""What a refusal is about is found out: rotated keys are read anew, a side's fault is named."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rowferry.errors import AccessDenied, ObjectRejected, SideFault
from rowferry.plan import ProductionSide
from rowferry.s3.client import ObjectClient, open_object_client
from support.s3.clients import COPY, GET, HEAD, WAIT_SECONDS, ask, begin, opened, side_of
from support.s3.stand_in import Behaviour, StandIn, answer, refuse


@contextmanager
def judged(judge: Callable[[str], Behaviour]) -> Iterator[tuple[ObjectClient, StandIn]]:
    """A client, without retries, of a server whose answers depend on the head of the request."""
    with StandIn().judging(judge) as server, opened(side_of(server)) as client:
        yield client, server


def test_a_wrong_clock_is_a_fault_of_the_side_also_where_a_head_is_refused_without_a_word() -> None:
    def judge(head: str) -> Behaviour:
        return answer(403) if head.startswith("HEAD") else refuse(403, "RequestTimeTooSkewed")

    for request, sent in ((COPY, 1), (HEAD, 2)):
        with judged(judge) as (client, server):
            error = ask(client, request).error
        assert isinstance(error, SideFault)
        assert "correct the clock of this host" in str(error)
        assert len(server.requests) == sent


def test_a_head_refused_without_a_word_is_followed_by_one_get_that_tells() -> None:
    def judge(head: str) -> Behaviour:
        return answer(400) if head.startswith("HEAD") else refuse(400, "ExpiredToken")

    with judged(judge) as (client, server):
        asked = [begin(client, HEAD) for _ in range(50)]
        assert {type(each.result(WAIT_SECONDS).error) for each in asked} == {SideFault}
    assert [line for line in server.request_lines if line.startswith("GET")] == ["GET /bucket/k HTTP/1.1"]


def test_an_object_that_is_refused_is_no_fault_of_the_side_and_says_nothing_of_the_next() -> None:
    codes = iter(["AccessDenied", "ExpiredToken"])

    def judge(head: str) -> Behaviour:
        return answer(403) if head.startswith("HEAD") else refuse(403, next(codes))

    with judged(judge) as (client, _):
        error = ask(client, HEAD).error
        assert isinstance(error, AccessDenied)
        assert error.code == "AccessDenied"
        assert isinstance(ask(client, HEAD).error, SideFault)


def test_a_signature_refused_for_all_keys_is_a_fault_of_the_side_and_for_one_key_it_is_none() -> None:
    refusal = refuse(403, "SignatureDoesNotMatch")
    for of_lists, error in ((answer(200), ObjectRejected), (refusal, SideFault)):
        with judged(lambda head, of_lists=of_lists: of_lists if "list-type=2" in head else refusal) as (client, _):
            assert {type(ask(client, request).error) for request in (GET, HEAD, COPY)} == {error}


def test_another_region_is_a_fault_of_the_side_that_names_it() -> None:
    for status in (301, 307, 400):
        with judged(lambda _, status=status: answer(status, x_amz_bucket_region="eu-north-1")) as (client, _):
            error = ask(client, HEAD).error
        assert isinstance(error, SideFault)
        assert "set production.region" in str(error)
        assert "eu-north-1" in str(error)


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the keys of the profile `rotated`."""
    path = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))

    def write(key: str) -> None:
        path.write_text(f"[rotated]\naws_access_key_id = {key}\naws_secret_access_key = SK\n")

    return write


@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "ExpiredToken"])
def test_rotated_keys_of_a_profile_are_read_without_a_restart(profile: Callable[[str], None], code: str) -> None:
    def judge(head: str) -> Behaviour:
        return answer(200) if "Credential=NEW/" in head else refuse(403, code)

    profile("OLD")
    with StandIn().judging(judge) as server:
        side = ProductionSide("bucket", endpoint_url=server.endpoint_url, profile="rotated")
        with closing(open_object_client(side)) as client:
            profile("NEW")
            assert ask(client, COPY).error is None
            assert ask(client, COPY).error is None
        assert len(server.requests) == 3
        profile("OLD")
        with closing(open_object_client(side)) as client:
            assert isinstance(ask(client, COPY).error, SideFault)


def test_keys_that_cannot_be_read_anew_leave_the_refusal_as_it_was(
    profile: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile("OLD")
    with StandIn().judging(lambda _: refuse(403, "InvalidAccessKeyId")) as server:
        side = ProductionSide("bucket", endpoint_url=server.endpoint_url, profile="rotated")
        with closing(open_object_client(side)) as client:
            monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "gone"))
            error = ask(client, COPY).error
        assert isinstance(error, SideFault)
        assert "InvalidAccessKeyId" in str(error)
        assert len(server.requests) == 1
