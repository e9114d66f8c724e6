"""Checks the result of a run: every row, every object of both buckets, the counts."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rowferry.db.connection import Connection, translated_errors
from rowferry.errors import ObjectError
from rowferry.http import event_loop
from rowferry.keys import map_text
from rowferry.plan import Plan, Side
from rowferry.reports.progress import read_counts
from rowferry.s3.access.credentials import load_credentials
from rowferry.s3.access.endpoint import resolve_endpoint
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import Request, get_object, get_object_tagging
from rowferry.s3.responses import Response, read_tags
from rowferry.s3.retry import send_many
from rowferry_lab.queries import statement
from rowferry_lab.simulated.environment import Environment
from rowferry_lab.simulated.images import SampleImage
from rowferry_queues.migrate.spec import MIGRATE

IN_FLIGHT = 64
DEADLINE = timedelta(seconds=30)
LISTED = 3
"""How many keys a problem names."""

Listing = Mapping[str, tuple[str, object]]
"""The ETag of each object and when it was last written, by key."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known before a run: the images, where they will be, and the legacy bucket as it stands."""

    images: Sequence[SampleImage]
    at: Mapping[str, SampleImage]
    """By production key: where every image must stand in the end."""
    legacy: Listing

    @classmethod
    def of(cls, plan: Plan, images: Sequence[SampleImage], legacy: Listing) -> "Expected":
        """Work out where the images must end."""
        (entries,) = plan.entries
        ends = {map_text(image.key, entries).text if image.side == "legacy" else image.key: image for image in images}
        return cls(images, ends, legacy)

    @property
    def legacy_entries(self) -> int:
        """Return how many there are to migrate."""
        return sum(image.side == "legacy" for image in self.images)


def list_bucket(environment: Environment, bucket: str) -> Listing:
    """Return all objects of a bucket."""
    s3: Any = environment.open_s3()
    try:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {
            item["Key"]: (item["ETag"], item["LastModified"]) for page in pages for item in page.get("Contents", [])
        }
    finally:
        s3.close()


def find_problems(connection: Connection, environment: Environment, plan: Plan, expected: Expected) -> list[str]:
    """Return one sentence for each problem; none when the migration was correct."""
    return [
        *_check_rows(connection, expected),
        *_check_counts(connection, plan, expected.legacy_entries),
        *_check_objects(environment, plan.production, expected.at),
        *_name_keys(
            "legacy objects were written, deleted or added",
            _differ(list_bucket(environment, plan.legacy.bucket), expected.legacy),
        ),
    ]


def _check_rows(connection: Connection, expected: Expected) -> list[str]:
    """Compare the keys of all rows with those they must have; each belongs to one image."""
    with translated_errors():
        keys = [row["path"] for row in connection.execute(statement("demo_keys"))]
    wanted = expected.at.keys()
    problems = _name_keys("rows have a wrong key", sorted(set(keys) - wanted))
    return problems if len(keys) == len(wanted) else [*problems, f"{len(keys):,} rows instead of {len(wanted):,}"]


def _check_counts(connection: Connection, plan: Plan, legacy_entries: int) -> list[str]:
    counts = read_counts(connection, plan.name, MIGRATE.name)
    problems: list[str] = []
    if not counts.balances:
        problems.append("the counts do not balance")
    if counts.waiting or counts.batches_error or counts.migrated != legacy_entries or counts.entries != legacy_entries:
        problems.append(
            f"{counts.migrated:,} of {legacy_entries:,} entries migrated, {counts.waiting:,} waiting, "
            f"{counts.batches_error:,} batches in ERROR"
        )
    return problems


def _check_objects(environment: Environment, side: Side, expected: Mapping[str, SampleImage]) -> list[str]:
    """Read every production object and compare bytes, headers and tags with its image's."""
    bodies = _ask_all(side, [get_object("production", key) for key in expected])
    tagged = [key for key, image in expected.items() if _tags_of(image)]
    tags = _ask_all(side, [get_object_tagging("production", key) for key in tagged])
    wrong = [key for key, image in expected.items() if not _is_image(bodies[key], image)]
    wrong += [key for key in tagged if not _has_tags(tags[key], expected[key])]
    strangers = list_bucket(environment, side.bucket).keys() - expected.keys()
    return [
        *_name_keys("production objects are missing or not equal", sorted(set(wrong))),
        *_name_keys("unexpected production objects", sorted(strangers)),
    ]


def _has_tags(response: Response | ObjectError, image: SampleImage) -> bool:
    return isinstance(response, Response) and dict(read_tags(response.body)) == _tags_of(image)


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
    tagging = dict(image.headers).get("x-amz-tagging", "")
    return dict(re.findall(r"([^=&]+)=([^&]*)", tagging))


def _ask_all(side: Side, requests: Sequence[Request]) -> dict[str, Response | ObjectError]:
    """Send all requests, IN_FLIGHT at a time, and return the results by key."""
    client = ObjectClient(
        side,
        load_credentials(side, os.environ),
        endpoint=resolve_endpoint(side),
        max_in_flight=IN_FLIGHT,
        deadline=DEADLINE,
    )
    with closing(client):
        results = event_loop.run(send_many(client.send, requests, at_once=IN_FLIGHT))
    return {request.key: result for request, result in zip(requests, results, strict=True)}


def _differ(now: Listing, before: Listing) -> list[str]:
    return sorted({key for key, _ in now.items() ^ before.items()})


def _name_keys(words: str, keys: Iterable[str]) -> list[str]:
    listed = list(keys)
    return [f"{len(listed):,} {words}: {', '.join(listed[:LISTED])}"] if listed else []
