"""Counts the objects of both buckets, each on a thread of its own, while the caller does something else."""

import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from rowferry.credentials import load_credentials
from rowferry.errors import ObjectError, UserMistake
from rowferry.object_store import open_bucket
from rowferry.plan import Plan, Side, SideName

OnProgress = Callable[[str], None]
"""Told, in a few words, what a long scan is at; from any thread."""


def ignore_progress(words: str) -> None:
    """Tell nobody."""
    del words


class _GivenUp(Exception):
    """Nobody waits for the count any more."""


@contextmanager
def count_objects_meanwhile(
    plan: Plan, on_progress: OnProgress = ignore_progress
) -> Generator[Callable[[], dict[SideName, int]]]:
    """Begin to count, and yield a function that waits for the counts and returns them.

    That function raises UserMistake when a bucket cannot be listed. A block that ends early ends the counting.
    """
    given_up = Event()
    with ThreadPoolExecutor(2, "rowferry-count") as pool:
        legacy, production = (
            pool.submit(_count_objects, side, on_progress, given_up) for side in (plan.legacy, plan.production)
        )

        def wait_for_counts() -> dict[SideName, int]:
            return {"legacy": legacy.result(), "production": production.result()}

        try:
            yield wait_for_counts
        finally:
            given_up.set()


def _count_objects(side: Side, on_progress: OnProgress, given_up: Event) -> int:
    def tell(count: int) -> None:
        if given_up.is_set():
            raise _GivenUp
        on_progress(f"counting objects: {count:,} in the {side.name} bucket so far")

    try:
        with open_bucket(side, load_credentials(side, os.environ)) as bucket:
            return bucket.count_objects(on_progress=tell)
    except ObjectError as error:
        raise UserMistake(
            f"The objects of the {side.name} bucket {side.bucket} cannot be counted: {error}; --no-objects skips that."
        ) from error
