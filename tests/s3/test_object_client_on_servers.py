"""The hot path against real S3 servers: strange keys, conditions, ranges, parts."""

from botocore.credentials import Credentials

from rowferry.errors import BucketNotFound, ObjectNotFound, PreconditionFailed, SideFault
from rowferry.plan import ProductionSide
from rowferry.s3 import operations
from rowferry.s3.operations import Request
from rowferry.s3.responses import read_text
from support.s3.buckets import Buckets
from support.s3.clients import HEAD, WAIT_SECONDS, ask, begin, clients_of, opened


def test_a_conditional_put_never_overwrites_and_nfc_and_nfd_stay_two_objects(buckets: Buckets) -> None:
    with clients_of(buckets) as (_, production):
        for key, body, error in (
            ("\u00e9", b"nfc", None),
            ("e\u0301", b"nfd", None),
            ("\u00e9", b"another", PreconditionFailed),
        ):
            got = ask(production, operations.put_object(key, body, headers=[], if_none_match=True))
            assert type(got.error) is (error or type(None))
        assert ask(production, operations.get_object("production", "\u00e9")).body == b"nfc"
        assert ask(production, operations.get_object("production", "e\u0301")).body == b"nfd"


def test_a_missing_object_is_told_from_a_missing_bucket(buckets: Buckets) -> None:
    def copy(bucket: str) -> Request:
        return operations.copy_object("new", source_bucket=bucket, source_key="gone", if_none_match=False)

    with clients_of(buckets) as (legacy, production):
        assert isinstance(ask(legacy, operations.head_object("legacy", "gone")).error, ObjectNotFound)
        assert isinstance(ask(production, copy(buckets.legacy)).error, ObjectNotFound)
        assert isinstance(ask(production, copy("no-such-bucket")).error, BucketNotFound)


def test_a_wrong_secret_is_refused_access(versitygw_buckets: Buckets) -> None:
    side = ProductionSide(versitygw_buckets.production, endpoint_url=versitygw_buckets.server.endpoint_url)
    with opened(side, Credentials(versitygw_buckets.server.access_key, "wrong")) as client:
        assert isinstance(ask(client, operations.get_object("production", "k")).error, SideFault)
        assert isinstance(ask(client, operations.head_object("production", "k")).error, SideFault)


def test_a_range_returns_just_its_bytes_of_the_pinned_version(buckets: Buckets) -> None:
    buckets.client.put_object(Bucket=buckets.legacy, Key="k", Body=b"0123456789")
    with clients_of(buckets) as (legacy, _):
        etag = ask(legacy, operations.head_object("legacy", "k")).etag
        part = ask(legacy, operations.get_object("legacy", "k", first_byte=2, last_byte=4, if_match=etag))
        changed = ask(legacy, operations.get_object("legacy", "k", if_match="another"))
    assert (part.status, part.body) == (206, b"234")
    assert isinstance(changed.error, PreconditionFailed)


def test_an_object_is_uploaded_in_parts_and_an_aborted_upload_leaves_none(buckets: Buckets) -> None:
    part, key, headers = b"p" * (5 * 1024 * 1024), "large one", [("Content-Type", "image/x-odd")]
    with clients_of(buckets) as (_, production):
        started = [ask(production, operations.create_multipart_upload(each, headers=headers)) for each in ("k", key)]
        aborted, upload_id = (read_text(each.body, "UploadId") or "" for each in started)
        assert ask(production, operations.abort_multipart_upload("k", upload_id=aborted)).error is None
        assert isinstance(ask(production, HEAD).error, ObjectNotFound)
        parts: list[tuple[int, str]] = []
        for number, body in enumerate((part, b"the rest"), start=1):
            sent = ask(production, operations.upload_part(key, body, upload_id=upload_id, part_number=number))
            assert sent.etag
            parts.append((number, sent.etag))
        done = operations.complete_multipart_upload(key, upload_id=upload_id, parts=parts, if_none_match=True)
        assert ask(production, done).error is None
        found = ask(production, operations.head_object("production", key))
    assert (found.content_length, found.headers["content-type"]) == (len(part) + 8, "image/x-odd")


def test_every_one_of_many_requests_is_answered_once(moto_buckets: Buckets) -> None:
    with clients_of(moto_buckets) as (_, production):
        started = [
            begin(production, operations.head_object("production", f"missing-{number}")) for number in range(200)
        ]
        assert {type(future.result(WAIT_SECONDS).error) for future in started} == {ObjectNotFound}
