"""Looks at the folders of a bucket: how many objects each has, as far as can be counted soon, and some of their keys.

A bucket may hold hundreds of millions of objects: folders are listed by `/`, each is counted for a limited time, and a
part of its keys is kept. A folder that was not counted to its end has at least so many.
"""

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta

from rowferry.plan import SideName
from rowferry.s3.listings.keys import PAGE_KEYS, Ask, read_page
from rowferry.s3.operations import list_keys

AT_ONCE = 8
"""Folders that are counted side by side."""
MOST_FOLDERS = 40
"""Of one level, beside those that are named after ids: where there are more, they are looked at as one."""
MOST_LEVELS = 6
"""How deep one folder may be in another that holds nothing else."""
MOST_KEYS = 1_000
"""Kept of one folder."""
SPOTS = "26aeimquy"
"""Where a folder that is not counted to its end is looked at besides: keys behind these letters."""
SPOT_KEYS = 30
SPOTS_WITHIN = timedelta(seconds=5)
"""How long after the count such places are looked at: a slow server is not asked for all of them."""

_ID = re.compile(r"\d+|[0-9a-f]{1,3}|[0-9a-f]{8,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""A folder that is named after an id, a digest or a part of one."""


@dataclass(frozen=True, slots=True)
class Part:
    """Folders that are looked at as one, or the keys of a level that are in none."""

    name: str
    """What their keys begin with, or what says so to people."""
    prefixes: Sequence[str] = ()
    keys: Sequence[str] | None = None
    """None: of the folders."""
    is_complete: bool = True
    """Whether these are all keys."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What was seen of a part."""

    name: str
    prefix: str | None
    """What all its keys and no others begin with; None: there is no such prefix."""
    objects: int
    is_complete: bool
    """False where the time was over: there are at least so many."""
    keys: Sequence[str] = field(repr=False)
    """Some of the keys, from all over; all of up to MOST_KEYS."""


def look_at_folders(ask: Ask, side: SideName, within: timedelta) -> list[Folder]:
    """Return the folders of a side's bucket. Each is asked for once at least, and all for so long at most.

    Raises ObjectError where the bucket cannot be listed.
    """
    end = time.monotonic() + within.total_seconds()
    with ThreadPoolExecutor(AT_ONCE, "rowferry-folders") as pool:
        begun = [pool.submit(_look_at, ask, side, part, end) for part in _list_parts(ask, side)]
        return [folder for folder in (each.result() for each in begun) if folder.objects]


def _list_parts(ask: Ask, side: SideName) -> list[Part]:
    """Return the top folders of a bucket; where one holds all, those in it."""
    prefix = ""
    for _ in range(MOST_LEVELS):
        page = read_page(ask(list_keys(side, prefix, by_folder=True)))
        keys = [key for key in page.keys if key != prefix]
        if any("/" in key.removeprefix(prefix) for key in keys):  # the server knows no folders
            return [Part(prefix, [prefix])]
        if len(page.folders) != 1 or keys or not page.is_last:
            break
        (prefix,) = page.folders
    else:
        return [Part(prefix, [prefix])]
    if prefix and not page.folders:
        return [Part(prefix, [prefix])]
    ids = [name for name in page.folders if _ID.fullmatch(name.removeprefix(prefix).rstrip("/"))]
    named = [name for name in page.folders if name not in ids]
    if len(named) > MOST_FOLDERS or (not page.is_last and not named) or not (named or keys):
        return [Part(prefix, [prefix])]
    parts = [Part(name, [name]) for name in named]
    if ids:
        parts.append(Part(f"{ids[0]} to {ids[-1]}" if len(ids) > 1 else ids[0], ids))
    if keys:
        parts.append(Part(f"{prefix}* (in no folder)", [], keys, page.is_last))
    return parts


def _look_at(ask: Ask, side: SideName, part: Part, end: float) -> Folder:
    """Count a part until `end`, but one page at least."""
    if part.keys is not None:
        return Folder(part.name, None, len(part.keys), part.is_complete, part.keys)
    prefix = part.prefixes[0] if len(part.prefixes) == 1 else None
    objects, kept, is_complete = 0, list[str](), True
    for number, each in enumerate(part.prefixes):
        if number and time.monotonic() > end:
            is_complete = False
            break
        counted, keys, is_whole = _count(ask, side, each, end)
        objects, kept, is_complete = objects + counted, kept + keys, is_complete and is_whole
    if not is_complete:
        for each in part.prefixes[:: max(1, len(part.prefixes) // len(SPOTS))]:
            for spot in SPOTS if prefix is not None else [""]:
                if time.monotonic() < end + SPOTS_WITHIN.total_seconds():
                    kept += _look_behind(ask, side, each, spot)
    chosen = list(dict.fromkeys(kept))
    if len(chosen) > MOST_KEYS:
        chosen = chosen[:: -(-len(chosen) // MOST_KEYS)]
    return Folder(part.name, prefix, objects, is_complete, chosen)


def _count(ask: Ask, side: SideName, prefix: str, end: float) -> tuple[int, list[str], bool]:
    """Return the objects below a prefix, some of their keys, and whether that is all."""
    objects, kept, after, token = 0, list[str](), "", None
    while True:
        page = read_page(ask(list_keys(side, prefix, after=after, token=token)))
        keys = [key for key in page.keys if not key.endswith("/")]  # such a key is a folder that a console has made
        kept += keys if not objects else keys[:: PAGE_KEYS // SPOT_KEYS]
        objects += len(keys)
        if page.is_last or not page.keys:
            return objects, kept, True
        if time.monotonic() > end:
            return objects, kept, False
        after, token = page.keys[-1], page.token


def _look_behind(ask: Ask, side: SideName, prefix: str, spot: str) -> list[str]:
    """Return some keys of a folder behind a letter, or its first ones without any."""
    page = read_page(ask(list_keys(side, prefix, after=prefix + spot if spot else "", max_keys=SPOT_KEYS)))
    return [key for key in page.keys if not key.endswith("/")]
