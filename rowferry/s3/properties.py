"""What the plan says that production objects shall be, as the headers of their writes."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from rowferry.plan import ProductionSide
from rowferry.s3.operations import Pairs

Pair = tuple[str, str]

ENCRYPTION = "x-amz-server-side-encryption"
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


def _leave_out(headers: dict[str, str | None]) -> Pairs:
    """Return the headers without those that the plan does not name."""
    return tuple((name, value) for name, value in headers.items() if value is not None)
