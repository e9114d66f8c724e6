"""What the plan says that production objects shall be, as the headers of their writes."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from rowferry.plan import ProductionSide
from rowferry.s3.encodings import strip_framing
from rowferry.s3.operations import Pairs
from rowferry.s3.responses import Response

Pair = tuple[str, str]

ENCRYPTION = "x-amz-server-side-encryption"
KEPT_HEADERS = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
"""What a new object is told of the legacy one, besides `x-amz-meta-...` and the tags. The S3 server of the demo has a
list of its own (lab/rowferry_lab/servers/fake_s3/http.py), on purpose: a stand-in must not learn from what it tests."""
REPLACE_METADATA: Pair = ("x-amz-metadata-directive", "REPLACE")
"""With it, a copy has the content headers and the metadata of the request, and none of its source."""
REPLACE_TAGS: Pair = ("x-amz-tagging-directive", "REPLACE")


def content_headers(side: ProductionSide) -> Pairs:
    """Return the content headers that stand in the place of the legacy object's; a copy needs REPLACE_METADATA."""
    return _leave_out({"cache-control": side.cache_control, "content-disposition": side.content_disposition})


def storage_headers(side: ProductionSide) -> Pairs:
    """Return the headers that say how objects are kept: any write takes them, a copy without a directive as well."""
    return _leave_out(
        {
            "x-amz-storage-class": side.storage_class,
            ENCRYPTION: side.encryption,
            f"{ENCRYPTION}-aws-kms-key-id": side.kms_key_id,
        }
    )


def encode_tags(tags: Pairs) -> str:
    """Return tags as a header has them, with %20 for a space: Ceph RGW takes a + for itself."""
    return urlencode(tags, quote_via=quote)


def write_headers(side: ProductionSide) -> Pairs:
    """Return those headers of a write that need rights of their own: for an ACL, and for a key of KMS."""
    acl = None if side.acl == "copy" else side.acl
    return (*storage_headers(side), *_leave_out({"x-amz-acl": acl}))


def find_differences(expected: Pairs, found: Mapping[str, str]) -> list[str]:
    """Return, in words, which of the headers of a write an object does not have, by the headers of its HEAD.

    A key of KMS is left out, since the plan may name its alias and the server names its ARN; no class is STANDARD.
    """
    told = {"x-amz-storage-class": "STANDARD", **found}
    return [
        f"{name} is {told.get(name, '')!r} instead of {value!r}"
        for name, value in expected
        if not name.endswith("-key-id") and told.get(name) != value
    ]


def read_content(response: Response) -> list[Pair]:
    """Return the content headers and the metadata of an object; how its body was framed once is none of them."""
    headers = [(name, response.headers[name]) for name in KEPT_HEADERS if name in response.headers]
    headers = [(name, strip_framing(value) if name == "content-encoding" else value) for name, value in headers]
    metadata = [(name, value) for name, value in response.headers.items() if name.startswith("x-amz-meta-")]
    return [(name, value) for name, value in headers if value or name != "content-encoding"] + metadata


def find_lost_content(legacy: Response, production: Response, of_plan: Pairs) -> list[str]:
    """Return, in words, which content headers and metadata a copy does not have; those of the plan are passed over."""
    names = {name for name, _ in of_plan}
    expected = tuple(pair for pair in read_content(legacy) if pair[0] not in names)
    return find_differences(expected, dict(read_content(production)))


def _leave_out(headers: dict[str, str | None]) -> Pairs:
    """Return the headers without those that the plan does not name."""
    return tuple((name, value) for name, value in headers.items() if value is not None)
