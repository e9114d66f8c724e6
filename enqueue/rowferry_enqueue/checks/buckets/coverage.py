"""Finds the folders of the legacy bucket that no entry and no [[objects]] of a plan names.

The bucket is not listed whole: folders are counted for a limited time, and a part of their keys is looked up, by one
scan of each table that could name them.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta

from rowferry.db.connection import Connection, set_local, translated_errors
from rowferry.db.entries import EntryQueries
from rowferry.errors import DatabaseBusy, ObjectError
from rowferry.keys import Form
from rowferry.plan import Entries, Plan
from rowferry.progress import OnProgress, ignore_progress
from rowferry.reports.coverage import NEXT, Coverage, FolderCoverage
from rowferry.s3.client import open_object_client
from rowferry.s3.cures import cure_of
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import explain, summarise_error
from rowferry_enqueue.checks.buckets.folders import AT_ONCE, Folder, look_at_folders
from rowferry_enqueue.checks.finding import Finding, note
from rowferry_enqueue.checks.rows.scans import LONGER

WITHIN = timedelta(seconds=5)
"""How long objects are counted: a person waits."""
DEADLINE = timedelta(seconds=30)
"""Of one request."""


def check_coverage(
    connection: Connection, plan: Plan, on_progress: OnProgress, found: list[Coverage]
) -> Iterator[Finding]:
    """Yield a note about what the plan leaves behind; adds to `found` what was seen."""
    on_progress("looking for folders of the legacy bucket that the plan does not name")
    try:
        coverage = find_coverage(connection, plan, on_progress)
    except DatabaseBusy as error:
        yield note(f"whether the plan names all folders of the legacy bucket is not known: {error}", LONGER)
        return
    except ObjectError as error:
        what = f"whether the plan names all folders of the legacy bucket cannot be seen ({summarise_error(error)})"
        yield note(what, explain(plan.legacy, error) or cure_of("listing-denied", plan.legacy))
        return
    found.append(coverage)
    if words := coverage.describe():
        yield note(words, f"{NEXT[0].lower()}{NEXT[1:].rstrip('.')}")


def find_coverage(
    connection: Connection, plan: Plan, on_progress: OnProgress = ignore_progress, scan_within: timedelta | None = None
) -> Coverage:
    """Return what a plan covers; `scan_within`: how long the scan of a table may take.

    Raises ObjectError where the bucket cannot be listed, and other RowferryErrors where a table cannot be read.
    """
    with closing(open_object_client(plan.legacy, max_in_flight=AT_ONCE, deadline=DEADLINE)) as client:
        folders = look_at_folders(lambda request: client.ask(request, tries=TRIES), "legacy", WITHIN)
    unnamed = {key for folder in folders for key in folder.keys if not _is_named_by_prefix(key, plan)}
    for entries in plan.entries:
        wanted = [key for key in unnamed if key.startswith(entries.legacy_object_prefix)]
        if wanted:
            on_progress(f"looking up keys in {entries.label}")
            unnamed -= _find_named(connection, entries, wanted, scan_within)
    return Coverage(tuple(_measure(folder, unnamed) for folder in folders))


def _is_named_by_prefix(key: str, plan: Plan) -> bool:
    """Return whether [[objects]] name a key, or it is a production key in the same bucket."""
    if any(key.startswith(objects.prefix) for objects in plan.objects):
        return True
    return plan.is_one_bucket and any(key.startswith(part.production_object_prefix) for part in plan.parts)


def _find_named(
    connection: Connection, entries: Entries, keys: Sequence[str], scan_within: timedelta | None
) -> set[str]:
    """Return those of some legacy keys that rows name, in either form, themselves or by a folder that they are in."""
    try:
        return _look_up(connection, entries, keys, scan_within)
    except DatabaseBusy as error:
        raise DatabaseBusy(f"{entries.label} could not be scanned ({str(error).rstrip('.')})") from error


def _look_up(connection: Connection, entries: Entries, keys: Sequence[str], scan_within: timedelta | None) -> set[str]:
    forms: tuple[Form, ...] = ("legacy", "production") if entries.rows == "move" else ("legacy",)
    with translated_errors(), connection.transaction():
        if scan_within is not None:
            set_local(connection, statement_timeout=scan_within)
        queries = EntryQueries.of(connection, entries)
        texts_of = {key: _list_folders(key) if entries.names_folders else [key] for key in keys}
        parameters = queries.parameters(keys=list({text for texts in texts_of.values() for text in texts}))
        named = [queries.compose("named_keys", object_keys=queries.compose_keys(form)) for form in forms]
        found = {row["key"] for query in named for row in connection.execute(query, parameters)}
        return {key for key, texts in texts_of.items() if not found.isdisjoint(texts)}


def _list_folders(key: str) -> list[str]:
    """Return what a row may call the folders that a key is in: with a `/` at the end, and without."""
    places = [place for place, letter in enumerate(key) if letter == "/"]
    return [key[: place + more] for place in places for more in (0, 1)]


def _measure(folder: Folder, unnamed: set[str]) -> FolderCoverage:
    """Return a folder with the share of its keys that nothing names, out of all its objects."""
    left = [key for key in folder.keys if key in unnamed]
    homes = {_find_home(key) for key in folder.keys if key not in unnamed} - {folder.prefix}
    beside = sum(_find_home(key) in homes for key in left)
    is_exact = len(folder.keys) == folder.objects or len(left) in {0, len(folder.keys)}
    number = round(folder.objects * len(left) / len(folder.keys)) if folder.keys else 0
    return FolderCoverage(
        folder.name,
        folder.objects,
        number,
        folder.is_complete,
        is_exact,
        folder.prefix,
        is_beside=0 < 9 * len(left) <= 10 * beside,
    )


def _find_home(key: str) -> str:
    """Return the folder that an object lies in, with its slash."""
    return "".join(key.rpartition("/")[:2])
