"""Proposes [[objects]] for the folders of the legacy bucket that no entry of a discovered plan names."""

import tomllib
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from os.path import commonprefix
from typing import NamedTuple

from rowferry.db.connection import connect
from rowferry.errors import RowferryError, UsageError
from rowferry.plan import Side
from rowferry.plan_file import parse_plan
from rowferry.reports.coverage import MOST_SHOWN, Coverage, FolderCoverage
from rowferry.s3.client import open_object_client
from rowferry.s3.retry import TRIES
from rowferry_cli.discover.plan_text import wrap, write_pair
from rowferry_enqueue.checks.buckets.coverage import find_coverage
from rowferry_enqueue.checks.buckets.folders import AT_ONCE, Folder, look_at_folders

COUNT_WITHIN = timedelta(seconds=3)
"""How long folders are counted where no column names an object."""
SCAN_WITHIN = timedelta(seconds=20)
"""How long a table is read for its keys: nothing is proposed where that is not enough."""
MANY_FOLDERS = 20
"""So many folders below one are named after rows, and proposed as that one."""


class LeftFolders(NamedTuple):
    """What is added to the plan, and what is said of it."""

    text: str = ""
    words: str = ""


def propose_objects(text: str) -> LeftFolders:
    """Return the [[objects]] that a plan lacks, given its text; nothing where that cannot be seen."""
    try:
        plan = parse_plan(tomllib.loads(text), "that was discovered")
    except UsageError:
        return LeftFolders(words="Which folders no entry names was not looked at: complete the plan first.")
    if plan.is_one_bucket:
        return LeftFolders()
    try:
        with connect("plan --discover", autocommit=True) as connection:
            coverage = find_coverage(connection, plan, scan_within=SCAN_WITHIN)
    except RowferryError as error:
        return LeftFolders(words=f"Which folders no entry names could not be seen: {error}")
    few = _describe_few(coverage)
    words = coverage.describe()
    if words is None:
        return LeftFolders(few)
    proposed = sum(_is_taken(folder) for folder in coverage.left)
    begin = f"Without the {proposed} [[objects]] in the plan, " if proposed else ""
    return LeftFolders("".join(_write(coverage)) + few, f"{begin}{words}.")


def _describe_few(coverage: Coverage) -> str:
    """Return a comment for the plan about folders of which few objects are named by nothing; empty without any."""
    few = [str(folder) for folder in coverage.folders if folder.unnamed and not folder.is_left]
    about = f"No row names some objects, as those of deleted rows are; they stay behind: {', '.join(few)}."
    return "".join(f"\n# {line}" for line in wrap(about)) + "\n" if few else ""


def _is_taken(folder: FolderCoverage) -> bool:
    """Return whether nothing names any object below one prefix, or rows need those that nothing names."""
    return folder.prefix is not None and (folder.unnamed == folder.objects or folder.is_beside)


def _write(coverage: Coverage) -> Iterator[str]:
    for folder in coverage.left:
        mark = "" if _is_taken(folder) else "# "
        ends = "are copied without a row" if _is_taken(folder) else "stay behind, unless this is no comment"
        for line in wrap(f"No row names these objects, as far as was seen: {folder}. They {ends}."):
            yield f"\n# {line}" if line.startswith("No row") else f"# {line}"
            yield "\n"
        if folder.prefix is not None:
            yield f"{mark}[[objects]]\n{mark}{write_pair('prefix', folder.prefix)}\n"


def propose_folders(legacy: Side) -> LeftFolders:
    """Return [[objects]] for every folder of a bucket that no column names; nothing where it cannot be listed."""
    seen = [FolderCoverage(one.name, one.objects, one.objects, one.is_complete, prefix=one.prefix)
            for one in _join(_list_largest(legacy))]  # fmt: skip
    if all(one.prefix is None for one in seen):
        return LeftFolders()
    about = (
        "No column was found that names an object, so these are copied without rows, and no row is changed. Where rows "
        "name them, [[entries]] may compute their keys by `objects`."
    )
    text = "".join(f"\n# {line}" for line in wrap(about)) + "\n" + "".join(_write(Coverage(seen)))
    return LeftFolders(text, f"Objects by folder: {', '.join(map(str, seen[:MOST_SHOWN]))}.")


def _join(folders: list[Folder]) -> list[Folder]:
    """Return the folders; in the place of many the one that they are in, if it is one."""
    above = commonprefix([one.prefix or "" for one in folders]).rpartition("/")[0]  # noqa: RUF071 - cut at a slash
    if len(folders) < MANY_FOLDERS or not above:
        return folders
    objects, is_complete = sum(one.objects for one in folders), all(one.is_complete for one in folders)
    return [Folder(f"{above}/", f"{above}/", objects, is_complete, keys=())]


def describe_folders(legacy: Side) -> str:
    """Return which folders a bucket has that no column names, as a sentence; empty where it cannot be listed."""
    largest = _list_largest(legacy)[:MOST_SHOWN]
    if not largest:
        return ""
    seen = [FolderCoverage(one.name, one.objects, one.objects, one.is_complete) for one in largest]
    return (
        f" Objects of the bucket by folder: {', '.join(map(str, seen))}. A plan can copy them without rows, by "
        "[[objects]], or compute their keys, by `objects` of [[entries]]."
    )


def _list_largest(legacy: Side) -> list[Folder]:
    try:
        with closing(open_object_client(legacy, max_in_flight=AT_ONCE)) as client:
            folders = look_at_folders(lambda request: client.ask(request, tries=TRIES), "legacy", COUNT_WITHIN)
    except RowferryError:
        return []
    return sorted(folders, key=lambda folder: -folder.objects)
