"""Counts objects by listings, those without rows and those in folders that rows name, and takes some keys."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from random import Random

from rowferry.errors import ObjectError, UsageError
from rowferry.keys import map_object
from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry.s3.access.credentials import load_credentials
from rowferry.s3.boto import Bucket, open_bucket
from rowferry_cli.estimate.entries import TableSample

LISTED_WITHIN = timedelta(seconds=20)
"""Then a listing is given up: a bucket of 80 million objects takes 80,000 requests."""


def sample_objects(plan: Plan, most: int, on_progress: Callable[[str], None]) -> list[TableSample]:
    """Return a sample of each [[objects]] of the plan with up to `most` keys.

    Raises UsageError when the legacy bucket cannot be listed.
    """
    if not plan.objects:
        return []
    with _open_legacy(plan) as bucket:
        return [_list_objects(bucket, objects, most, on_progress) for objects in plan.objects]


def open_folders(
    plan: Plan, samples: list[TableSample], most: int, on_progress: Callable[[str], None]
) -> list[TableSample]:
    """Return samples of rows with the objects of their folders, up to `most` of each table.

    Raises UsageError when the legacy bucket cannot be listed.
    """
    if not any(entries.names_folders for entries in plan.entries):
        return samples
    with _open_legacy(plan) as bucket:
        return [
            _open_folders(bucket, each, each.entries, most, on_progress)
            if isinstance(each.entries, Entries) and each.entries.names_folders
            else each
            for each in samples
        ]


def _open_folders(
    bucket: Bucket, sample: TableSample, entries: Entries, most: int, on_progress: Callable[[str], None]
) -> TableSample:
    """List sampled folders to their ends, until there are enough objects or the time is over."""
    end, opened, pairs = time.monotonic() + LISTED_WITHIN.total_seconds(), 0, list[tuple[str, str]]()
    for folder, _ in sample.keys:
        if len(pairs) >= most or time.monotonic() > end:
            break
        opened += 1
        for keys in bucket.list_keys(folder):
            pairs += [map_object(key, entries)[:2] for key in keys]
            on_progress(f"counting objects of {sample.entries.label}: {len(pairs):,} in {opened:,} folders so far")
            if time.monotonic() > end:
                break
    return replace(sample, keys=tuple(pairs), objects_per_entry=len(pairs) / opened if pairs else 1.0)


@contextmanager
def _open_legacy(plan: Plan) -> Generator[Bucket]:
    try:
        with open_bucket(plan.legacy, load_credentials(plan.legacy, os.environ)) as bucket:
            yield bucket
    except ObjectError as error:
        raise UsageError(f"The legacy bucket {plan.legacy.bucket} cannot be listed: {error}.") from error


def _list_objects(bucket: Bucket, objects: ObjectPrefix, most: int, on_progress: Callable[[str], None]) -> TableSample:
    """Count the objects, and take each key with the same probability (reservoir sampling, Vitter 1985)."""
    end, dice = time.monotonic() + LISTED_WITHIN.total_seconds(), Random(0)  # noqa: S311 - a sample, no secret
    count, is_whole, taken = 0, True, list[str]()
    for keys in bucket.list_keys(objects.prefix):
        for key in keys:
            count += 1
            if len(taken) < most:
                taken.append(key)
            elif (place := dice.randrange(count)) < most:
                taken[place] = key
        on_progress(f"counting {objects.label}: {count:,} so far")
        if time.monotonic() > end:
            is_whole = False
            break
    dice.shuffle(taken)
    pairs: list[tuple[str, str]] = []
    for key in taken:
        try:
            pairs.append(map_object(key, objects)[:2])
        except ValueError:
            continue
    return TableSample(objects, float(count), 0.0, tuple(pairs), len(taken) - len(pairs), is_whole=is_whole)
