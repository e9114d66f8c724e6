"""Decides which tags an object gets: those that are wanted, with all others that it has. Pure."""

import unicodedata
from collections.abc import Mapping

from rowferry.errors import ObjectConflict
from rowferry.plan.properties import MAX_TAG_NAME, MAX_TAG_VALUE, MAX_TAGS

Tags = tuple[tuple[str, str], ...]

RESERVED = "aws:"
"""How the names of tags begin that belong to the provider."""
SIGNS = frozenset("+-=._:/@")
"""Besides these, S3 takes letters, numbers and spaces of any script: \\p{L}, \\p{N} and \\p{Z}.
Source: Amazon S3 User Guide, "Categorizing your objects using tags", and the pattern of `Tag` in the API Reference."""


class TagConflict(ObjectConflict):
    """S3 takes no such tag, or no further one; or two rows ask for different values of one object."""


def merge_tags(found: Tags, wanted: Mapping[str, str]) -> Tags | None:
    """Return all tags that an object is to have, at most MAX_TAGS; None where it has the wanted ones already.

    Tags that are not wanted keep their values and places. Raises TagConflict where there are too many.
    """
    held = dict(found)
    if all(held.get(name) == value for name, value in wanted.items()):
        return None
    merged = {**held, **wanted}
    if len(merged) > MAX_TAGS:
        new = ", ".join(repr(name) for name in wanted if name not in held)
        more = f"and {new} would be more" if new else "more"
        words = f"the object has {len(held)} tags, {more} than the {MAX_TAGS} that S3 takes"
        raise TagConflict("TooManyTags", words)
    return tuple(merged.items())


def combine(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return what two rows want of one object together. Raises TagConflict where they want different values."""
    for name, value in other.items():
        if one.get(name, value) != value:
            words = f"two rows of the batch point at this object, and ask for different values of the tag {name!r}"
            raise TagConflict("RowsDisagree", words)
    return {**one, **other}


def refuse_unfit(wanted: Mapping[str, str]) -> None:
    """Raise TagConflict where a tag is none that S3 takes."""
    for name, value in wanted.items():
        if fault := find_fault(name, value):
            raise TagConflict("InvalidTag", f"the tag {name!r} {fault}")


def find_fault(name: str, value: str) -> str:
    """Return what is wrong with a tag, as the end of a sentence; empty where S3 takes it."""
    if not name or measure(name) > MAX_TAG_NAME:
        return f"has a name of {measure(name)} characters, and S3 takes 1 to {MAX_TAG_NAME}"
    if name.lower().startswith(RESERVED):
        return f"begins with {RESERVED!r}, which belongs to the provider"
    if strange := find_strange(name):
        return f"has {strange} in its name, which S3 does not take"
    if measure(value) > MAX_TAG_VALUE:
        return f"would have a value of {measure(value)} characters, and S3 takes {MAX_TAG_VALUE}"
    if strange := find_strange(value):
        return f"would have {strange} in its value, which S3 does not take"
    return ""


def measure(text: str) -> int:
    """Return how many characters of UTF-16 a text has, as S3 counts them: one beyond U+FFFF is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def find_strange(text: str) -> str:
    """Return the first character that no tag may have, as a message names it; empty where there is none."""
    strange = next((sign for sign in text if sign not in SIGNS and unicodedata.category(sign)[0] not in "LNZ"), "")
    return repr(strange) if strange else ""
