"""Counts the objects of both buckets, each on a thread of its own."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Event

from rowferry.errors import ObjectError, UsageError
from rowferry.plan import Plan, Side, SideName
from rowferry.progress import OnProgress, ignore_progress
from rowferry.s3.client import open_object_client
from rowferry.s3.listings.keys import list_pages

WITHIN = timedelta(seconds=20)
"""How long is counted: a bucket of 80 million objects takes 80,000 requests."""
DEADLINE = timedelta(seconds=30)
"""Of one request."""
TRIES = 2


@dataclass(frozen=True, slots=True)
class ObjectCount:
    """How many objects a bucket holds."""

    number: int
    is_complete: bool = True
    """False where the time was over: there are at least so many."""

    def __str__(self) -> str:
        """Return the number for people."""
        return f"{'' if self.is_complete else '≥ '}{self.number:,}"


class UncountedObjects(UsageError):
    """A bucket could not be listed."""


def count_objects_of(
    plan: Plan, on_progress: OnProgress = ignore_progress, within: timedelta | None = WITHIN
) -> dict[SideName, ObjectCount]:
    """Return how many objects each bucket holds, both counted at once; `within` None: for no time.

    Raises UncountedObjects when a bucket cannot be listed.
    """
    given_up = Event()
    with ThreadPoolExecutor(2, "rowferry-count") as pool:
        legacy, production = (
            pool.submit(_count_objects, side, on_progress, given_up, within) for side in (plan.legacy, plan.production)
        )
        try:
            return {"legacy": legacy.result(), "production": production.result()}
        finally:
            given_up.set()


def _count_objects(side: Side, on_progress: OnProgress, given_up: Event, within: timedelta | None) -> ObjectCount:
    end = math.inf if within is None else time.monotonic() + within.total_seconds()
    counted = 0
    try:
        with closing(open_object_client(side, deadline=DEADLINE)) as client:
            for keys in list_pages(partial(client.ask, tries=TRIES), side.name):
                counted += len(keys)
                if given_up.is_set():
                    break
                if time.monotonic() > end:
                    on_progress(f"the {side.name} bucket has at least {counted:,} objects: the count is given up")
                    break
                on_progress(f"counting objects: {counted:,} in the {side.name} bucket so far")
            else:
                return ObjectCount(counted)
        return ObjectCount(counted, is_complete=False)
    except ObjectError as error:
        raise UncountedObjects(
            f"The objects of the {side.name} bucket {side.bucket} cannot be counted: {error}; --no-objects skips that."
        ) from error
