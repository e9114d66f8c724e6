"""Which folders a bucket has that are not named after ids, and some keys of each."""

import re
from collections.abc import Sequence

from rowferry_cli.discover.evidence.bucket import LegacyBucket

MOST_OF_FOLDER = 60
"""Keys of one folder that are compared with rows."""
MANY_SLICES = 8
MAX_PREFIXES = 24
"""Folders that may stand before what a column holds."""

_ID = re.compile(r"\d+|[0-9a-f]{2,3}|[0-9a-f]{8,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|_?X{1,4}", re.IGNORECASE)
"""A folder that is named after an id, a digest or a part of one."""


def list_prefixes(bucket: LegacyBucket) -> list[str]:
    """Return the folders that may stand before what a column holds: of the first two levels, the shortest first."""
    first = [folder for folder in bucket.list_folder("")[0] if not _ID.fullmatch(folder.rstrip("/"))][:MAX_PREFIXES]
    second: list[str] = []
    for folder in first[:8]:
        below = [name for name in bucket.list_folder(folder)[0] if not _ID.fullmatch(name[len(folder) : -1])]
        second += below[:8]
    found = [*first, *second][:MAX_PREFIXES]
    for folder in found:
        bucket.list_folder(folder)  # so that no key is asked for that cannot be there
    return found


def list_samples(bucket: LegacyBucket) -> list[str]:
    """Return some keys of each folder, down to those that are named after ids."""
    found: list[str] = []
    folders = [""]
    while folders:
        folder = folders.pop(0)
        below, keys = bucket.list_folder(folder)
        found += _pick(keys)
        names = [name[len(folder) : -1] for name in below]
        named = [] if _are_slices(names) else [folder + name + "/" for name in names if not _ID.fullmatch(name)]
        if len(named) < len(below):
            deep = bucket.list_folder(folder, deep=True)[1]
            found += _pick(deep)
        if folder.count("/") < 4:
            folders += named[:20]
    return list(dict.fromkeys(found))


def _pick(keys: Sequence[str]) -> list[str]:
    """Return some keys of a folder: neighbours, which may be versions of one object, and others from all over it."""
    half = MOST_OF_FOLDER // 2
    return [*keys[:half], *keys[half :: max(1, len(keys) // half)][:half]]


def _are_slices(names: Sequence[str]) -> bool:
    """Return whether folders are named after parts of ids: many of them, all equally short."""
    return len(names) >= MANY_SLICES and {len(name) for name in names} <= {1, 2, 3}
