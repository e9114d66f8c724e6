"""Counts the legacy entries of a plan, and looks at the objects of some on both sides."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from random import Random

from psycopg import Error

from rowferry.batch import Entry
from rowferry.db.connection import Connection, connect, fetch_one
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.errors import ObjectError, ObjectNotFound
from rowferry.http import event_loop
from rowferry.keys import ObjectKeys, map_entry, map_object
from rowferry.plan import Entries, ObjectPrefix, Plan, Side
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry.s3.listings.keys import Ask, list_range
from rowferry.s3.operations import head_object
from rowferry.s3.responses import Response
from rowferry.s3.retry import TRIES, send_many
from rowferry_enqueue.checks.buckets.bucket_errors import check_bucket_exists, refuse
from rowferry_enqueue.checks.finding import as_error, refuse_first
from rowferry_enqueue.checks.rows.scans import describe_unscanned
from rowferry_enqueue.checks.rows.tables import refuse_unfit_tables

LISTED_SECONDS = 10.0
"""Then a listing is given up, or after a million keys."""
TIMED = 5
"""So many objects are looked at one after the other, to time the requests; the others AT_ONCE."""
AT_ONCE = 16

SeenObject = tuple[Response | None, Response | None]
"""The headers of an object in legacy and in production; None: it is not there."""


@dataclass(frozen=True, slots=True)
class CountedEntries:
    """How many legacy entries one [[entries]] or [[objects]] has, and the objects of some."""

    part: Entries | ObjectPrefix
    count: int
    chosen: Sequence[tuple[ObjectKeys, ...]]
    """Empty: a key that cannot become a production key, so that the entry fails without a request, or a folder."""
    is_whole: bool = True
    """Whether a listing came to its end; else there are more."""


def take_sample(plan: Plan, most: int) -> tuple[list[CountedEntries], dict[ObjectKeys, SeenObject], dict[str, float]]:
    """Return the entries of each part of the plan, the objects of up to `most` of each, and the latency of each side.

    The latency is the seconds that a HEAD takes alone. Raises UsageError when a table or a bucket cannot be read.
    """
    with ExitStack() as until:
        legacy, production = (
            until.enter_context(closing(open_object_client(side, max_in_flight=AT_ONCE)))
            for side in (plan.legacy, plan.production)
        )
        ask = partial(legacy.ask, tries=TRIES)
        try:
            with connect("estimate", autocommit=True) as connection:
                refuse_unfit_tables(connection, plan)
                counted = [count_entries(connection, ask, entries, most) for entries in plan.entries]
            counted += [count_objects(ask, part, most) for part in plan.objects]
            objects = list(dict.fromkeys(keys for each in counted for named in each.chosen for keys in named))
            heads, took = look_at(legacy, plan.legacy, [keys.legacy for keys in objects])
            copies, took_new = look_at(production, plan.production, [keys.production for keys in objects])
        except ObjectError as error:
            side = plan.side(error.side or "legacy")
            raise as_error(refuse(side, error, "read", "s3:GetObject and s3:ListBucket")) from error
    seen = dict(zip(objects, zip(heads, copies, strict=True), strict=True))
    return counted, seen, {"legacy": took, "production": took_new}


def count_entries(connection: Connection, ask: Ask, entries: Entries, most: int) -> CountedEntries:
    """Return how many legacy entries a table has, and up to `most` of them, or folders with so many; two scans."""
    try:
        with connection.transaction():
            queries = EntryQueries.of(connection, entries)
            count = fetch_one(connection, queries.compose("count_entries"), queries.parameters())["legacy"]
            query = queries.compose("sample_entries", wanted=queries.has_form("legacy"))
            rows = connection.execute(query, queries.parameters(most=most)).fetchall()
    except Error as error:
        raise as_error(describe_unscanned([entries], error)) from error
    chosen: list[tuple[ObjectKeys, ...]] = []
    for entry in to_entries(rows):
        if sum(map(len, chosen)) < most:
            chosen.append(_take_usable(entries, _name_keys(ask, entries, entry)))
    return CountedEntries(entries, count, chosen)


def count_objects(ask: Ask, part: ObjectPrefix, most: int) -> CountedEntries:
    """Return how many objects have a prefix, and up to `most` of them."""
    keys, is_whole = _list(ask, part.prefix)
    some = Random(0).sample(keys, min(most, len(keys)))  # noqa: S311 - a sample, no secret
    return CountedEntries(part, len(keys), [_take_usable(part, [key]) for key in some], is_whole)


def _name_keys(ask: Ask, entries: Entries, entry: Entry) -> Iterator[str]:
    """Yield the legacy keys of an entry, or those in its folders. Raises ValueError where they cannot be mapped."""
    for named in map_entry(entry, entries).objects:
        yield from _list(ask, named.legacy)[0] if entries.names_folders else [named.legacy]


def _take_usable(part: Entries | ObjectPrefix, keys: Iterable[str]) -> tuple[ObjectKeys, ...]:
    """Return the objects of legacy keys; none where one of them cannot become a production key."""
    try:
        return tuple(map_object(key, part) for key in keys)
    except ValueError:
        return ()


def _list(ask: Ask, prefix: str) -> tuple[list[str], bool]:
    """Return the legacy keys that begin with a prefix, as far as they are listed in time, and whether that is all."""
    end = time.monotonic() + LISTED_SECONDS
    listed = list_range(
        ask, "legacy", prefix, prefix, None, most_keys=10**6, is_enough=lambda _: time.monotonic() > end
    )
    return listed.keys, listed.next is None


def look_at(client: ObjectClient, side: Side, keys: Sequence[str]) -> tuple[list[Response | None], float]:
    """Return the headers of each object, None where it is not there, and how many seconds a request takes alone.

    Raises UsageError where there is no such bucket, and the ObjectError of an object that may not be looked at.
    """
    if not keys:
        return [], 0.0
    refuse_first(check_bucket_exists(client, side))
    seen, took, began = list[Response | ObjectError](), 0.0, time.monotonic()
    for some, at_once in ((keys[:TIMED], 1), (keys[TIMED:], AT_ONCE)):
        seen += event_loop.run(send_many(client.send, [head_object(side.name, key) for key in some], at_once=at_once))
        took = took or (time.monotonic() - began) / len(seen)
        for found in seen:
            if isinstance(found, ObjectError) and not isinstance(found, ObjectNotFound):
                raise found
    return [found if isinstance(found, Response) else None for found in seen], took
