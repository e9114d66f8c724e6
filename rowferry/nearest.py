"""What a mistyped name may have been meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a mistyped one, in any case; None where none is like it."""
    by_letters = {one.casefold(): one for one in known}
    return next((by_letters[near] for near in get_close_matches(name.casefold(), by_letters, n=1)), None)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean path?)`, for the end of a clause; empty where no known name is like it."""
    near = find_nearest(name, known)
    return f" (did you mean {near}?)" if near is not None else ""
