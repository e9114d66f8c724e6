"""Counts the objects of both buckets, each on a thread of its own, while the caller does something else."""

import math
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
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
    below: Mapping[str, int] = field(default_factory=dict[str, int])
    """Those of them that are of [[objects]], by label."""

    def __str__(self) -> str:
        """Return the number for people."""
        return self.show(self.number)

    def show(self, number: int) -> str:
        """Return a part of the number for people."""
        return f"{'' if self.is_complete else '≥ '}{number:,}"


class UncountedObjects(UsageError):
    """A bucket could not be listed."""


@contextmanager
def count_objects_meanwhile(
    plan: Plan, on_progress: OnProgress = ignore_progress, within: timedelta | None = WITHIN
) -> Generator[Callable[[], dict[SideName, ObjectCount]]]:
    """Begin to count, and yield a function that waits for the counts and returns them; `within` None: for no time.

    That function raises UncountedObjects when a bucket cannot be listed. A block that ends early ends the counting.
    """
    given_up = Event()
    with ThreadPoolExecutor(2, "rowferry-count") as pool:
        legacy, production = (
            pool.submit(_count_objects, side, on_progress, given_up, within, _prefixes_of(plan, side.name))
            for side in (plan.legacy, plan.production)
        )

        def wait_for_counts() -> dict[SideName, ObjectCount]:
            return {"legacy": legacy.result(), "production": production.result()}

        try:
            yield wait_for_counts
        finally:
            given_up.set()


def _prefixes_of(plan: Plan, side: SideName) -> dict[str, str]:
    """Return what the keys of the plan's [[objects]] begin with, by label."""
    legacy = side == "legacy"
    return {each.label: each.legacy_object_prefix if legacy else each.production_object_prefix for each in plan.objects}


def _count_objects(
    side: Side, on_progress: OnProgress, given_up: Event, within: timedelta | None, prefixes: Mapping[str, str]
) -> ObjectCount:
    end = math.inf if within is None else time.monotonic() + within.total_seconds()
    counted, below = 0, dict.fromkeys(prefixes, 0)
    try:
        with closing(open_object_client(side, deadline=DEADLINE)) as client:
            for keys in list_pages(partial(client.ask, tries=TRIES), side.name):
                counted += len(keys)
                for label, prefix in prefixes.items():
                    below[label] += sum(key.startswith(prefix) for key in keys)
                if given_up.is_set():
                    break
                if time.monotonic() > end:
                    on_progress(f"the {side.name} bucket has at least {counted:,} objects: the count is given up")
                    break
                on_progress(f"counting objects: {counted:,} in the {side.name} bucket so far")
            else:
                return ObjectCount(counted, below=below)
        return ObjectCount(counted, is_complete=False, below=below)
    except ObjectError as error:
        raise UncountedObjects(
            f"The objects of the {side.name} bucket {side.bucket} cannot be counted: {error}; --no-objects skips that."
        ) from error
