"""Checks the result of a run: every row, every object of both buckets, the counts."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rowferry.db.connection import Connection, translated_errors
from rowferry.errors import ObjectError
from rowferry.http import event_loop
from rowferry.keys import map_text
from rowferry.plan import Plan, Side
from rowferry.reports.progress import read_counts
from rowferry.s3.access.credentials import load_credentials
from rowferry.s3.boto import open_client
from rowferry.s3.client import open_object_client
from rowferry.s3.operations import Request, get_object, get_object_tagging
from rowferry.s3.responses import Response, read_tags
from rowferry.s3.retry import send_many
from rowferry_lab.queries import statement
from rowferry_lab.simulated.images import SampleImage
from rowferry_queues.migrate.spec import MIGRATE

IN_FLIGHT = 64
LISTED = 3
"""How many keys a problem names."""

Listing = Mapping[str, tuple[str, object]]
"""The ETag of each object and when it was last written, by key."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known before a run."""

    images: Mapping[str, SampleImage]
    """By the production key where each must be in the end."""
    legacy: Listing
    """The legacy bucket as it was."""

    @classmethod
    def of(cls, plan: Plan, images: Sequence[SampleImage]) -> "Expected":
        """Work out where the images must end, and look at the legacy bucket."""
        (entries,) = plan.entries
        ends = {map_text(image.key, entries).text if image.side == "legacy" else image.key: image for image in images}
        return cls(ends, list_bucket(plan.legacy))

    @property
    def legacy_entries(self) -> int:
        """Return how many there are to migrate."""
        return sum(image.side == "legacy" for image in self.images.values())


def list_bucket(side: Side) -> Listing:
    """Return all objects of a bucket."""
    with closing(open_client(side, load_credentials(side, os.environ))) as s3:
        pages: Any = s3.get_paginator("list_objects_v2").paginate(Bucket=side.bucket)
        return {one["Key"]: (one["ETag"], one["LastModified"]) for page in pages for one in page.get("Contents", [])}


def find_problems(connection: Connection, plan: Plan, expected: Expected) -> list[str]:
    """Return one sentence for each problem; none when the migration was correct."""
    touched = {key for key, _ in list_bucket(plan.legacy).items() ^ expected.legacy.items()}
    return [
        *_check_rows(connection, expected),
        *_check_counts(connection, plan, expected.legacy_entries),
        *_check_objects(plan.production, expected.images),
        *_name_keys("legacy objects were written, deleted or added", touched),
    ]


def _check_rows(connection: Connection, expected: Expected) -> list[str]:
    """Compare the keys of all rows with those they must have; each belongs to one image."""
    with translated_errors():
        keys = [row["path"] for row in connection.execute(statement("demo_keys"))]
    wanted = expected.images.keys()
    problems = _name_keys("rows have a wrong key", set(keys) - wanted)
    return problems if len(keys) == len(wanted) else [*problems, f"{len(keys):,} rows instead of {len(wanted):,}"]


def _check_counts(connection: Connection, plan: Plan, legacy_entries: int) -> list[str]:
    counts = read_counts(connection, plan.name, MIGRATE.name)
    problems = [] if counts.balances else ["the counts do not balance"]
    if counts.waiting or counts.batches_error or counts.migrated != legacy_entries or counts.entries != legacy_entries:
        problems.append(
            f"{counts.migrated:,} of {legacy_entries:,} entries migrated, {counts.waiting:,} waiting, "
            f"{counts.batches_error:,} batches in ERROR"
        )
    return problems


def _check_objects(side: Side, expected: Mapping[str, SampleImage]) -> list[str]:
    """Read every production object and compare bytes, headers and tags with its image's."""
    bodies = _ask_all(side, [get_object("production", key) for key in expected])
    tagged = {key: tags for key, image in expected.items() if (tags := _tags_of(image))}
    answers = _ask_all(side, [get_object_tagging("production", key) for key in tagged])
    wrong = {key for key, image in expected.items() if not _is_image(bodies[key], image)}
    wrong |= {key for key, tags in tagged.items() if not _has_tags(answers[key], tags)}
    return [
        *_name_keys("production objects are missing or not equal", wrong),
        *_name_keys("unexpected production objects", list_bucket(side).keys() - expected.keys()),
    ]


def _has_tags(response: Response | ObjectError, tags: Mapping[str, str]) -> bool:
    return isinstance(response, Response) and dict(read_tags(response.body)) == tags


def _is_image(response: Response | ObjectError, image: SampleImage) -> bool:
    """Return whether a response has the image's bytes and every header that it was written with."""
    said = [(name.lower(), value) for name, value in image.headers if name.lower() != "x-amz-tagging"]
    return (
        isinstance(response, Response)
        and response.body == image.body
        and all(response.headers.get(name) == value for name, value in said)
        and response.headers.get("x-amz-tagging-count", "0") == str(len(_tags_of(image)))
    )


def _tags_of(image: SampleImage) -> dict[str, str]:
    return dict(re.findall(r"([^=&]+)=([^&]*)", dict(image.headers).get("x-amz-tagging", "")))


def _ask_all(side: Side, requests: Sequence[Request]) -> dict[str, Response | ObjectError]:
    """Send all requests, IN_FLIGHT at a time, and return the results by key."""
    with closing(open_object_client(side, max_in_flight=IN_FLIGHT)) as client:
        results = event_loop.run(send_many(client.send, requests, at_once=IN_FLIGHT))
    return {request.key: result for request, result in zip(requests, results, strict=True)}


def _name_keys(words: str, keys: Collection[str]) -> list[str]:
    return [f"{len(keys):,} {words}: {', '.join(sorted(keys)[:LISTED])}"] if keys else []
