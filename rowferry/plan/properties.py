"""What production objects shall be: the types of these fields of `[production]`, and what a type cannot say."""

import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

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
MAX_TAG_NAME, MAX_TAG_VALUE = 128, 256
"""Characters. Source: Amazon S3 User Guide, "Categorizing your objects using tags"."""
RESERVED_TAGS = "aws:"
"""How the names of tags begin that belong to the provider."""
TAG_SIGNS = frozenset("+-=._:/@")
"""Besides these, S3 takes letters, numbers and spaces of any script: \\p{L}, \\p{N} and \\p{Z}.
Source: Amazon S3 User Guide, "Categorizing your objects using tags", and the pattern of `Tag` in the API Reference."""
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects must be restored before they can be read: no row may point at one."""
_is_header = re.compile(r"[!-~]([ -~]*[!-~])?").fullmatch


def find_fault(properties: "ProductionSide", names: Iterable[str]) -> str:
    """Return, as a sentence without a full stop, what cannot be meant; empty where all can.

    `names`: of all properties. Each text of them becomes a header.
    """
    for name in names:
        value: Any = getattr(properties, name)
        if isinstance(value, str) and not _is_header(value):
            return f"`{name}` of [production] must be plain ASCII text on one line, or be left out: it becomes a header"
    if properties.storage_class in ARCHIVES:
        return (
            f'`storage_class` of [production] cannot be "{properties.storage_class}": such objects must be restored '
            "before they can be read; move them there with a lifecycle rule later"
        )
    if properties.kms_key_id and not (properties.encryption or "").startswith("aws:kms"):
        return '`kms_key_id` of [production] needs `encryption = "aws:kms"` or "aws:kms:dsse"'
    return _find_fault_in_tags(properties.tags)


def _find_fault_in_tags(tags: TagRule) -> str:
    if isinstance(tags, str):
        return ""
    if not 1 <= len(tags) <= MAX_TAGS:
        return f'`tags` of [production] has {len(tags)} tags: write 1 to {MAX_TAGS}, or "none"'
    for name, value in tags.items():
        if fault := find_tag_fault(name, value):
            return f"the tag {name!r} of [production] {fault}: write another one"
    return ""


def find_tag_fault(name: str, value: str) -> str:
    """Return what is wrong with a tag, as the end of a sentence; empty where S3 takes it."""
    if not name or _count_utf16(name) > MAX_TAG_NAME:
        return f"has a name of {_count_utf16(name)} characters, and S3 takes 1 to {MAX_TAG_NAME}"
    if name.lower().startswith(RESERVED_TAGS):
        return f"begins with {RESERVED_TAGS!r}, which belongs to the provider"
    if strange := _find_strange(name):
        return f"has {strange} in its name, which S3 does not take"
    if _count_utf16(value) > MAX_TAG_VALUE:
        return f"would have a value of {_count_utf16(value)} characters, and S3 takes {MAX_TAG_VALUE}"
    if strange := _find_strange(value):
        return f"would have {strange} in its value, which S3 does not take"
    return ""


def _count_utf16(text: str) -> int:
    """Return how many characters of UTF-16 a text has, as S3 counts them: one beyond U+FFFF is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _find_strange(text: str) -> str:
    """Return the first character that no tag may have, as a message names it; empty where there is none."""
    strange = next((sign for sign in text if sign not in TAG_SIGNS and unicodedata.category(sign)[0] not in "LNZ"), "")
    return repr(strange) if strange else ""
