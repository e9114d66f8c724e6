import re
import unicodedata
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import ObjectRejected
from rowferry.s3 import operations
from rowferry.s3.operations import Request, encode_key

pytestmark = pytest.mark.pythons


def climbs(key: str) -> bool:
    depth = 0
    for segment in key.split("/"):
        depth += -1 if segment == ".." else 1 if segment not in {"", "."} else 0
        if depth < 0:
            return True
    return False


KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=250).filter(lambda key: not climbs(key))
SLASHED = st.lists(st.sampled_from(["", ".", "..", "a", "b c", "%2F", "é"]), min_size=1, max_size=8).map("/".join)


@given(KEYS | SLASHED.filter(lambda key: key != "" and not climbs(key)))
def test_any_key_comes_back_byte_for_byte_and_only_unreserved_characters_and_slashes_stay_bare(key: str) -> None:
    assert unquote_to_bytes(encode_key(key)) == key.encode(), "so no two keys share an encoding"
    assert re.fullmatch(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+", encode_key(key))


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        ("a b+c", "a%20b%2Bc"),
        ("100%.txt?versionId=3", "100%25.txt%3FversionId%3D3"),
        ("//lead//and/trail/", "//lead//and/trail/"),
        ("a/../b/./c", "a/../b/./c"),
        ("'\"&<>", "%27%22%26%3C%3E"),
        ("\U0001f600\n\x7f", "%F0%9F%98%80%0A%7F"),
        (unicodedata.normalize("NFC", "é"), "%C3%A9"),
        (unicodedata.normalize("NFD", "é"), "e%CC%81"),
        ("é" * 512, "%C3%A9" * 512),  # 1,024 bytes
    ],
)
def test_nothing_in_a_key_is_normalised(key: str, encoded: str) -> None:
    assert encode_key(key) == encoded


@pytest.mark.parametrize(
    ("key", "code"), [("", "InvalidKey"), ("é" * 512 + "a", "KeyTooLongError"), ("half\ud800", "InvalidKey")]
)
def test_what_no_server_can_store_is_refused_with_the_reason(key: str, code: str) -> None:
    with pytest.raises(ObjectRejected) as refused:
        operations.head_object("production", key)
    assert refused.value.code == code


@pytest.mark.parametrize("key", ["..", "../other-bucket/x", "a/../../other-bucket/x", "/../x", "./../x", "a//../../x"])
def test_a_key_cannot_climb_out_of_its_bucket(key: str) -> None:
    with pytest.raises(ObjectRejected, match="climbs above"):
        operations.copy_object(key, source_bucket="legacy", source_key="x", if_none_match=True)
    with pytest.raises(ObjectRejected, match="climbs above"):
        operations.copy_object("x", source_bucket="legacy", source_key=key, if_none_match=True)


def ranged(first: int | None, last: int | None) -> Request:
    return operations.get_object("legacy", "k", first_byte=first, last_byte=last)


COPY = operations.copy_object("new +", source_bucket="old", source_key="/a b?c", if_none_match=False)
PINNED = operations.copy_object("k", source_bucket="b", source_key="k", if_none_match=True, source_etag="abc")
ACL = operations.put_object_acl("k", "public-read")
PART = operations.upload_part_copy(
    "k", source_bucket="old", source_key="s", source_etag="e", first_byte=0, last_byte=9, upload_id="u", part_number=1
)
REQUESTS: tuple[tuple[Request, str, dict[str, str]], ...] = (
    (COPY, "PUT new%20%2B", {"x-amz-copy-source": "/old//a%20b%3Fc"}),
    (PINNED, "PUT k", {"x-amz-copy-source": "/b/k", "If-None-Match": "*", "x-amz-copy-source-if-match": '"abc"'}),
    (ranged(None, None), "GET k", {}),
    (ranged(0, 0), "GET k", {"Range": "bytes=0-0"}),
    (ranged(5, None), "GET k", {"Range": "bytes=5-"}),
    (ranged(None, 9), "GET k", {"Range": "bytes=0-9"}),
    (ranged(7, 9), "GET k", {"Range": "bytes=7-9"}),
    (operations.get_object("legacy", "k", if_match="abc"), "GET k", {"If-Match": '"abc"'}),
    (operations.get_object_tagging("legacy", "a b"), "GET a%20b?tagging=", {}),  # so that its signature agrees
    (operations.create_multipart_upload("k"), "POST k?uploads=", {}),
    (
        operations.upload_part("k", b"x", upload_id="a/b+c=", part_number=7),
        "PUT k?partNumber=7&uploadId=a%2Fb%2Bc%3D",
        {},
    ),
    (operations.abort_multipart_upload("k", upload_id="u&v"), "DELETE k?uploadId=u%26v", {}),
    (
        PART,
        "PUT k?partNumber=1&uploadId=u",
        {"x-amz-copy-source": "/old/s", "x-amz-copy-source-if-match": '"e"', "x-amz-copy-source-range": "bytes=0-9"},
    ),
    (ACL, "PUT k?acl=", {"x-amz-acl": "public-read"}),
)


def test_each_request_has_its_target_and_its_headers(subtests: pytest.Subtests) -> None:
    for request, target, headers in REQUESTS:
        with subtests.test(f"{request.operation} {target} {headers}"):
            assert (f"{request.method} {request.target}", dict(request.headers)) == (target, headers)
    assert (ACL.key, ACL.query) == ("k", (("acl", ""),))


def test_completing_lists_the_parts_in_well_formed_xml() -> None:
    request = operations.complete_multipart_upload(
        "k", upload_id="u", parts=[(1, "a<b"), (2, "c&d")], if_none_match=True
    )
    root = ElementTree.fromstring(request.body)
    assert [[field.text for field in part] for part in root] == [["1", '"a<b"'], ["2", '"c&d"']]
    names = {field.tag.rpartition("}")[2] for field in root.iter()}
    assert names == {"CompleteMultipartUpload", "Part", "PartNumber", "ETag"}
    assert dict(request.headers)["If-None-Match"] == "*"


def test_every_write_is_for_the_production_side() -> None:
    writes = [
        operations.copy_object("k", source_bucket="b", source_key="k", if_none_match=True),
        operations.put_object("k", b"", headers=[("x-amz-meta-a", "1")], if_none_match=True),
        operations.put_object_tagging("k", (("a", "1"),)),
        operations.put_object_acl("k", "public-read"),
        operations.create_multipart_upload("k"),
        operations.upload_part("k", b"", upload_id="u", part_number=1),
        operations.complete_multipart_upload("k", upload_id="u", parts=[], if_none_match=False),
        operations.abort_multipart_upload("k", upload_id="u"),
    ]
    assert {request.side for request in writes} == {"production"}
    assert [request.operation for request in writes] == [
        "CopyObject", "PutObject", "PutObjectTagging", "PutObjectAcl", "CreateMultipartUpload", "UploadPart",
        "CompleteMultipartUpload", "AbortMultipartUpload",
    ]  # fmt: skip
