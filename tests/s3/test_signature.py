"""Our signatures are those of botocore, for whatever key, header, query and body."""

import hashlib
from typing import Any
from urllib.parse import quote

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from rowferry.s3.access import signing
from rowferry.s3.access.credentials import CredentialSnapshot, take_snapshot
from rowferry.s3.access.signing import SIGNED_BODY_BYTES, UNSIGNED_PAYLOAD, Signer
from rowferry.s3.operations import copy_object, get_object_tagging, head_object, upload_part

pytestmark = pytest.mark.pythons

HOST = "bucket.example.org:8333"
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1).map("x-amz-meta-{}".format)
# Header values as HTTP allows them: no line breaks; botocore would fold other white space than blanks.
VALUES = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x2FFF, exclude_categories=["Cc", "Cs", "Z"]) | st.just(" ")
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(lambda key: key.strip("/. "))
LARGE = b"x" * (SIGNED_BODY_BYTES + 1)
QUERIES = st.dictionaries(st.text("abcXYZ-", min_size=1), st.text(max_size=20), max_size=4)


def sign_with_botocore(credentials: Credentials, method: str, target: str, headers: Any, body: bytes) -> str:
    request = AWSRequest(method, f"https://{HOST}{target}", data=body)
    for name, value in headers:
        request.headers[name] = value
    payload = hashlib.sha256(body).hexdigest() if len(body) <= SIGNED_BODY_BYTES else UNSIGNED_PAYLOAD
    request.context["payload_signing_enabled"] = len(body) <= SIGNED_BODY_BYTES
    request.headers["X-Amz-Content-SHA256"] = payload
    S3SigV4Auth(credentials, "s3", "eu-central-1").add_auth(request)
    return request.headers["Authorization"]


def sign(signer: Signer, *request: Any) -> str:
    """Return the Authorization header of a request."""
    return dict(signer.lay_out(*request).sign())["Authorization"]


def authorization_of(credentials: Credentials, method: str, target: str, headers: Any, body: bytes) -> str:
    frozen = take_snapshot(credentials)
    return sign(Signer("eu-central-1"), frozen, method, target, [("Host", HOST), *headers], body)


@pytest.fixture(autouse=True, scope="module")
def _standing_clock() -> Any:
    """The clock of both signers: they must not look at it in different seconds."""
    from datetime import UTC, datetime
    from unittest.mock import patch

    noon = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
    with (
        patch.object(signing.time, "time", noon.timestamp),
        patch("botocore.auth.get_current_datetime", lambda *_, **__: noon.replace(tzinfo=None)),
    ):
        yield


@given(
    KEYS, QUERIES, st.dictionaries(NAMES, VALUES, max_size=4), st.binary(max_size=100), st.sampled_from([None, "tok"])
)
def test_anything_is_signed_as_botocore_signs_it(
    key: str, query: dict[str, str], headers: dict[str, str], body: bytes, token: str | None
) -> None:
    target = f"/bucket/{quote(key, safe='/')}"
    if query:
        target += "?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())
    credentials = Credentials("AKID", "s3cr3t", token)
    given_headers = list(headers.items())
    ours = authorization_of(credentials, "PUT", target, given_headers, body)
    assert ours == sign_with_botocore(credentials, "PUT", target, given_headers, body)


@pytest.mark.parametrize(
    "request_",
    [
        head_object("legacy", "a b/ü+%41?.png"),
        copy_object("a/b", source_bucket="old", source_key="ä ~ö", if_none_match=True),
        get_object_tagging("legacy", "k"),
        upload_part("k", LARGE, upload_id="a+b/c==", part_number=7, headers=[("Content-MD5", "as/if==")]),
    ],
)
def test_our_requests_are_signed_as_botocore_signs_them(request_: Any) -> None:
    credentials = Credentials("AKID", "s3cr3t")
    signed = (request_.method, f"/bucket/{request_.target}", list(request_.headers), request_.body)
    assert authorization_of(credentials, *signed) == sign_with_botocore(credentials, *signed)


def test_new_credentials_sign_within_the_same_second() -> None:
    signer = Signer("us-east-1")
    old, new = (CredentialSnapshot(name, "s", None) for name in ("OLD", "NEW"))
    words = [sign(signer, who, "GET", "/b/k", [("Host", HOST)], b"") for who in (old, new, old)]
    assert words[0] == words[2] != words[1]
    assert "Credential=NEW/20261121/us-east-1/s3/aws4_request" in words[1]
