"""What production objects shall be: the types of these fields of `[production]`, and what a type cannot say."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from rowferry.plan.sides import ProductionSide

CannedAcl = Literal[
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
]
"""Source: Amazon S3 User Guide, "Access control list (ACL) overview", canned ACL."""
Acl = Literal["copy"] | CannedAcl
"""Copy: that of the legacy object, where it is a canned one."""
Encryption = Literal["AES256", "aws:kms", "aws:kms:dsse"]
TagRule = Literal["copy", "none"] | dict[str, str]
"""Those of the legacy object, none, or these."""

MAX_TAGS = 10
"""Of an object. Source: Amazon S3 User Guide, "Categorizing your objects using tags"."""
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects must be restored before they can be read: no row may point at one."""
_is_header = re.compile(r"[!-~]([ -~]*[!-~])?").fullmatch


def find_fault(properties: "ProductionSide", names: Iterable[str]) -> str:
    """Return, as a sentence without a full stop, what cannot be meant; empty where all can.

    `names`: of all properties. Each text of them becomes a header, but for `public_url`.
    """
    for name in names:
        value: Any = getattr(properties, name)
        if name != "public_url" and isinstance(value, str) and not _is_header(value):
            return f"`{name}` of [production] must be plain ASCII text on one line, or be left out: it becomes a header"
    if properties.storage_class in ARCHIVES:
        return (
            f'`storage_class` of [production] cannot be "{properties.storage_class}": such objects must be restored '
            "before they can be read; move them there with a lifecycle rule later"
        )
    if properties.kms_key_id and not (properties.encryption or "").startswith("aws:kms"):
        return '`kms_key_id` of [production] needs `encryption = "aws:kms"` or "aws:kms:dsse"'
    tags = properties.tags
    if not isinstance(tags, str) and not 1 <= len(tags) <= MAX_TAGS:
        return f'`tags` of [production] has {len(tags)} tags: write 1 to {MAX_TAGS}, or "none"'
    return _find_fault_in_url(properties.public_url)


def _find_fault_in_url(url: str | None) -> str:
    if url is None:
        return ""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    else:
        is_usable = is_usable and not (parts.query or parts.fragment or parts.username or parts.password)
    if not is_usable or not _is_header(url) or " " in url:
        return (
            "`public_url` of [production] must be what comes before an object's key in its URL, such as "
            '"https://cdn.example.com/" or "https://cdn.example.com/files/"'
        )
    return ""
