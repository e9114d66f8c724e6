"""Finds out whether the texts of a column name folders of objects, and not each object in them."""

import re
from collections.abc import Iterable, Sequence

from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.named import ColumnTexts, Named
from rowferry_cli.discover.evidence.readings import may_be_key, suggest_readings

FIRST_FOLDERS = 8
"""Of a column that are listed under each reading; all of a sample, if half of these have objects."""
LEAST_SHARE = 2
"""One text in so many must name a folder with objects, and one such folder in so many hold several."""


def find_folders(bucket: LegacyBucket, texts: ColumnTexts, known: Iterable[Named] = ()) -> Named | None:
    """Return the form in which texts name folders; None where they do not.

    `known`: the forms in which some of the texts name objects. A key that has others below it, as a picture has its
    smaller versions, is the key of an object all the same.
    """
    likely = [(row, text) for row, text in texts.placed if may_be_key(text) and "/" in text]
    for reading in suggest_readings((text for _, text in likely), bucket.side, ()) if likely else ():
        folders = {text: f"{key.strip('/')}/" for _, text in likely if (key := reading.read(text)) is not None}
        if not _may_exist(bucket, list(folders.values())):
            continue
        counts = bucket.count_in_folders(folders.values())
        of_form = [(row, text) for row, text in likely if text in folders]
        there = [text for _, text in of_form if counts[folders[text]]]
        existing = {folders[text] for text in there}
        several = sum(counts[folder] > 1 for folder in existing)
        if LEAST_SHARE * len(there) < len(of_form) or LEAST_SHARE * several < len(existing):
            continue
        if any(f"{key}/" in counts and counts[f"{key}/"] for one in known for key in one.keys):
            return None
        return Named.of(texts, reading, of_form, folders, existing, names_folders=True)
    return None


def _may_exist(bucket: LegacyBucket, folders: Sequence[str]) -> bool:
    """Return whether folders are worth a listing of each: they begin as keys do, and half of a few have objects."""
    listed = [folder for folder in dict.fromkeys(folders) if bucket.may_hold(folder)]
    if not listed or LEAST_SHARE * len(listed) < len({*folders}):
        return False
    tried = listed[:: max(1, len(listed) // FIRST_FOLDERS)][:FIRST_FOLDERS]
    return LEAST_SHARE * sum(map(bool, bucket.count_in_folders(tried).values())) >= len(tried)


def write_pattern(named: Named) -> re.Pattern[str]:
    """Return what matches the keys of objects in such folders, sampled or not; where these differ, any name does."""
    split = [key.rstrip("/").split("/") for key in named.keys]
    if len({len(names) for names in split}) == 1:
        names = [re.escape(each[0]) if len({*each}) == 1 else "[^/]+" for each in zip(*split, strict=True)]
        return re.compile("/".join(names) + "/")
    return re.compile("|".join(map(re.escape, sorted(named.keys))))
