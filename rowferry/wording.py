"""Words around numbers, and text of others that is fit to be seen."""

import re

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, among them the escape that commands a terminal; breaks of lines; marks that turn the direction of text."""


def show_text(text: object) -> str:
    r"""Return text of others (a key, a server's message) with control characters written as Python does: `\x1b`.

    Backslashes of the text stay as they are: it is for eyes, not to be read back.
    """
    return _UNFIT.sub(lambda found: repr(found[0])[1:-1], str(text))


def hide_unfit(pattern: str) -> str:
    """Return a LIKE pattern in which `_`, which matches any character, stands for each that is unfit to be seen."""
    return _UNFIT.sub("_", pattern)


def count(number: int, one: str, many: str) -> str:
    """Return `1 batch`, `1,234 batches`."""
    return f"{number:,} {one if number == 1 else many}"


def count_batches(number: int) -> str:
    """Return `1 batch`, `1,234 batches`."""
    return count(number, "batch", "batches")


def count_entries(number: int) -> str:
    """Return `1 entry`, `1,234 entries`."""
    return count(number, "entry", "entries")
