"""Reads the ids that a user gives as the bounds of a request."""

from collections.abc import Sequence

import msgspec

from rowferry.errors import UsageError
from rowferry.plan import Entries


def split_id(text: str, entries: Entries, option: str) -> Sequence[str]:
    """Return the values of an id's columns, or of the first of them.

    Of several columns, `text` is `7,12` or, as rowferry shows ids, `["7", "12"]`. Raises UsageError where it is not.
    """
    columns = len(entries.ids)
    if columns == 1:
        return (text,)
    values = read_array(text) if text.lstrip().startswith("[") else [part.strip() for part in text.split(",")]
    if values is None or not 1 <= len(values) <= columns:
        names = ",".join(entries.ids)
        raise UsageError(
            f"{option} is {text!r}, and an id of {entries.table} is {names}: give their values with commas between "
            'them, or as a JSON array of texts such as ["7", "12"].'
        )
    return values


def read_array(text: str) -> list[str] | None:
    """Return the texts and numbers of a JSON array as texts; None where it is no such array."""
    try:
        found = msgspec.json.decode(text, type=list[str | int])
    except msgspec.DecodeError:
        return None
    return [str(value) for value in found]
