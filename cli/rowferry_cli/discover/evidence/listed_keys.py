"""The keys of a bucket as far as they were listed, and what that tells without another request. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from rowferry.s3.listings.keys import PAGE_KEYS

Level = tuple[tuple[str, ...], tuple[str, ...]]
"""The folders and the keys below a prefix."""


class ListedKeys:
    """Keys of a bucket; of one that `is_whole`, all."""

    def __init__(self, keys: Sequence[str] = (), *, is_whole: bool = False) -> None:
        """Take keys in any order."""
        self.is_whole = is_whole
        self._sorted, self._keys = sorted(keys), frozenset(keys)

    def find(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that were listed."""
        return {key for key in keys if key in self._keys}

    def find_begin(self, text: str) -> str | None:
        """Return what stands before the longest key that a text ends with; None where it ends with none."""
        places = (0, *(found.end() for found in re.finditer("[/:]", text)))
        return next((text[:place] for place in places if text[place:] in self._keys), None)

    def count_below(self, prefix: str) -> int:
        """Return how many keys begin with a prefix and are longer."""
        first, end = self._find_range(prefix)
        return end - first - (prefix in self._keys)

    def split(self, prefix: str, *, deep: bool) -> Level:
        """Return the folders and the keys directly below a prefix, or all keys: up to 1,000 as a listing does."""
        first, end = self._find_range(prefix)
        if deep:
            return (), tuple(self._sorted[first : min(end, first + PAGE_KEYS)])
        rests = [key[len(prefix) :].partition("/") for key in self._sorted[first:end]]
        found = list(dict.fromkeys(prefix + name + slash for name, slash, _ in rests))[:PAGE_KEYS]
        return tuple(one for one in found if one != prefix and one.endswith("/")), tuple(
            one for one in found if one == prefix or not one.endswith("/")
        )

    def _find_range(self, prefix: str) -> tuple[int, int]:
        return bisect_left(self._sorted, prefix), bisect_right(self._sorted, prefix + chr(0x10FFFF))
