"""The fake S3 server answers as real servers do; what it cannot do, it refuses."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from support.s3.buckets import Buckets, fresh_buckets

PROPERTIES = {"ContentType": "text/plain", "CacheControl": "no-store", "Metadata": {"author": "me"}}
ODD_KEYS = ["some folder/ä+%41?.txt", "plus+plus", "\U0001f5bc.png", "#&'", "e\u0301", "\u00e9"]
PART_BYTES = 5 * 1024 * 1024


@pytest.fixture(params=["fake", "moto", "versitygw"])
def buckets(request: pytest.FixtureRequest) -> Iterator[Buckets]:
    """Two fresh buckets in the fake and in two servers of others: the same table of requests holds for all."""
    with fresh_buckets(request.getfixturevalue(request.param)) as fresh:
        yield fresh


def read(client: Any, bucket: str, key: str, **more: Any) -> bytes:
    with client.get_object(Bucket=bucket, Key=key, **more)["Body"] as body:
        return body.read()


def refusal(call: Callable[..., Any], **arguments: Any) -> tuple[int, str]:
    """Return the status and the code that a request is refused with; a HEAD has the status as its code."""
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    answer: Any = raised.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


# What holds for the fake, moto and versitygw alike


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_object_is_copied_with_its_properties_and_tags_or_with_others(buckets: Buckets, key: str) -> None:
    s3, source = buckets.client, {"Bucket": buckets.legacy, "Key": key}
    target = {"Bucket": buckets.production, "Key": key}
    put = s3.put_object(**source, Body=b"words", Tagging="album=1&kind=a%20b", **PROPERTIES)
    assert s3.copy_object(**target, CopySource=source)["CopyObjectResult"]["ETag"] == put["ETag"]
    found = s3.head_object(**target)
    assert {name: found[name] for name in PROPERTIES} == PROPERTIES
    assert (found["ContentLength"], found["ETag"]) == (5, put["ETag"])
    assert read(s3, **target_of(target)) == b"words"
    tags = {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(**target)["TagSet"]}
    assert tags == {"album": "1", "kind": "a b"}
    (listed,) = s3.list_objects_v2(Bucket=buckets.production)["Contents"]
    assert (listed["Key"], listed["Size"], listed["ETag"]) == (key, 5, put["ETag"])
    replaced = {"MetadataDirective": "REPLACE", "TaggingDirective": "REPLACE", "Tagging": "album=2"}
    s3.copy_object(**target, CopySource=source, ContentType="image/x", **replaced)
    found = s3.head_object(**target)
    assert (found["ContentType"], found.get("CacheControl"), found["Metadata"]) == ("image/x", None, {})
    assert s3.get_object_tagging(**target)["TagSet"] == [{"Key": "album", "Value": "2"}]


def target_of(names: dict[str, str]) -> dict[str, str]:
    return {"bucket": names["Bucket"], "key": names["Key"]}


def test_a_listing_goes_on_over_many_pages_in_the_order_of_the_keys(buckets: Buckets) -> None:
    keys = [f"image/{number:02}" for number in range(25)]
    for key in [*reversed(keys), "other"]:
        buckets.client.put_object(Bucket=buckets.legacy, Key=key, Body=b"")
    paginator = buckets.client.get_paginator("list_objects_v2")
    pages = list(paginator.paginate(Bucket=buckets.legacy, Prefix="image/", PaginationConfig={"PageSize": 10}))
    assert [len(page["Contents"]) for page in pages] == [10, 10, 5]
    assert [item["Key"] for page in pages for item in page["Contents"]] == keys


def test_a_listing_by_folder_names_each_folder_once(buckets: Buckets) -> None:
    for key in ("a", "b/1", "b/2", "b/c/3", "d/", "e"):
        buckets.client.put_object(Bucket=buckets.legacy, Key=key, Body=b"")
    listed = buckets.client.get_paginator("list_objects_v2").paginate
    for prefix, expected in ("", ["a", "b/", "d/", "e"]), ("b/", ["b/1", "b/2", "b/c/"]):
        pages = list(listed(Bucket=buckets.legacy, Prefix=prefix, Delimiter="/", PaginationConfig={"PageSize": 2}))
        assert len(pages) == 2
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        folders = [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", [])]
        assert (sorted(keys + folders), all(name.endswith("/") for name in folders)) == (expected, True)


def test_conditions_are_honoured(buckets: Buckets) -> None:
    s3, here = buckets.client, {"Bucket": buckets.legacy, "Key": "k"}
    there = {"Bucket": buckets.production, "Key": "k"}
    etag = s3.put_object(**here, Body=b"old")["ETag"]
    assert refusal(s3.put_object, **here, Body=b"new", IfNoneMatch="*") == (412, "PreconditionFailed")
    s3.copy_object(**there, CopySource=here, CopySourceIfMatch=etag)
    wrong = {"CopySource": here, "CopySourceIfMatch": '"0"'}
    if buckets.server.name != "moto":  # it copies all the same
        assert refusal(s3.copy_object, **there, **wrong) == (412, "PreconditionFailed")
    assert refusal(s3.get_object, **here, IfMatch='"0"') == (412, "PreconditionFailed")
    assert read(s3, **target_of(here)) == b"old"


def test_ranges_are_bytes_from_to_both_included(buckets: Buckets) -> None:
    s3, here = buckets.client, {"Bucket": buckets.legacy, "Key": "k"}
    s3.put_object(**here, Body=b"0123456789")
    assert read(s3, **target_of(here), Range="bytes=2-4") == b"234"
    assert read(s3, **target_of(here), Range="bytes=7-") == b"789"
    assert read(s3, **target_of(here), Range="bytes=7-99") == b"789"
    assert refusal(s3.get_object, **here, Range="bytes=10-") == (416, "InvalidRange")


def test_what_is_not_there_is_said_to_be_missing(buckets: Buckets) -> None:
    s3, here = buckets.client, {"Bucket": buckets.legacy, "Key": "k"}
    assert refusal(s3.get_object, **here) == (404, "NoSuchKey")
    assert refusal(s3.head_object, **here)[0] == 404
    assert refusal(s3.get_object, Bucket="no-such-bucket", Key="k") == (404, "NoSuchBucket")
    assert refusal(s3.head_bucket, Bucket="no-such-bucket")[0] == 404
    s3.put_object(**here, Body=b"")
    s3.delete_object(**here)
    assert refusal(s3.get_object, **here) == (404, "NoSuchKey")


@pytest.mark.parametrize("by_server", [False, True])
def test_an_upload_in_parts_has_the_etag_that_s3_would_give(buckets: Buckets, by_server: bool) -> None:
    s3, here = buckets.client, {"Bucket": buckets.legacy, "Key": "k"}
    there = {"Bucket": buckets.production, "Key": "parts"}
    body = bytes(range(256)) * 20480 + b"the rest"
    source = s3.put_object(**here, Body=body)["ETag"]
    upload = {**there, "UploadId": s3.create_multipart_upload(**there, ContentType="image/x")["UploadId"]}
    assert [each["Key"] for each in s3.list_multipart_uploads(Bucket=buckets.production)["Uploads"]] == ["parts"]
    parts = []
    for number, first in enumerate(range(0, len(body), PART_BYTES), 1):
        piece = body[first : first + PART_BYTES]
        if by_server:
            span = f"bytes={first}-{first + len(piece) - 1}"
            asked = {"CopySource": here, "CopySourceRange": span, "CopySourceIfMatch": source}
            etag = s3.upload_part_copy(**upload, PartNumber=number, **asked)["CopyPartResult"]["ETag"]
        else:
            etag = s3.upload_part(**upload, PartNumber=number, Body=piece)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    done = s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    digests = [hashlib.md5(body[first : first + PART_BYTES]).digest() for first in range(0, len(body), PART_BYTES)]
    assert done["ETag"].strip('"') == f"{hashlib.md5(b''.join(digests)).hexdigest()}-{len(parts)}"
    assert read(s3, **target_of(there)) == body
    assert s3.head_object(**there)["ContentType"] == "image/x"
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=buckets.production)


def test_an_upload_that_is_aborted_is_gone(buckets: Buckets) -> None:
    s3, there = buckets.client, {"Bucket": buckets.production, "Key": "parts"}
    upload = {**there, "UploadId": s3.create_multipart_upload(**there)["UploadId"]}
    s3.upload_part(**upload, PartNumber=1, Body=b"words")
    s3.abort_multipart_upload(**upload)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=buckets.production)
    if buckets.server.name != "moto":  # it answers 500
        assert refusal(s3.upload_part, **upload, PartNumber=1, Body=b"words") == (404, "NoSuchUpload")
    assert refusal(s3.head_object, **there)[0] == 404


# What only the fake has


def test_a_copy_honours_the_condition_that_moto_ignores(fake_buckets: Buckets) -> None:
    s3 = fake_buckets.client
    here, there = ({"Bucket": name, "Key": "k"} for name in (fake_buckets.legacy, fake_buckets.production))
    s3.put_object(**here, Body=b"words")
    s3.copy_object(**there, CopySource=here, IfNoneMatch="*")
    assert refusal(s3.copy_object, **there, CopySource=here, IfNoneMatch="*") == (412, "PreconditionFailed")
    assert refusal(s3.get_bucket_lifecycle_configuration, Bucket="two") == (501, "NotImplemented")


@pytest.mark.parametrize("ending", ["", "?"])
def test_a_part_with_another_etag_than_named_completes_nothing(fake_buckets: Buckets, ending: str) -> None:
    s3, there = fake_buckets.client, {"Bucket": fake_buckets.production, "Key": "a"}
    upload = {**there, "UploadId": s3.create_multipart_upload(**there)["UploadId"]}
    etags = [s3.upload_part(**upload, PartNumber=number, Body=b"words")["ETag"] for number in (1, 2, 3)]
    listed = s3.get_paginator("list_parts").paginate(**upload, PaginationConfig={"PageSize": 2})
    assert [part["ETag"] for page in listed for part in page["Parts"]] == etags
    parts = [{"PartNumber": number, "ETag": etag + ending} for number, etag in enumerate(etags, 1)]
    if ending:
        assert refusal(s3.complete_multipart_upload, **upload, MultipartUpload={"Parts": parts})[1] == "InvalidPart"
    else:
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        assert read(s3, **target_of(there)) == b"words" * 3
