"""The fake S3 server answers as real servers do; what it cannot do, it refuses."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from support.s3.buckets import Buckets, fresh_buckets

PROPERTIES = {"ContentType": "text/plain", "CacheControl": "no-store", "Metadata": {"author": "me"}}
ODD_KEYS = ["some folder/ä+%41?.txt", "plus+plus", "\U0001f5bc.png", "#&'", "e\u0301", "\u00e9"]


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
