"""Counts the legacy entries of a plan, and looks at the objects of some on both sides."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median

from psycopg import Error

from rowferry.batch import Entry
from rowferry.db.connection import Connection, connect, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.errors import ObjectError, ObjectNotFound
from rowferry.http import event_loop
from rowferry.keys import ObjectKeys, map_entry, map_object
from rowferry.plan import Entries, ObjectPrefix, Plan, SideName
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
        clients: dict[SideName, ObjectClient] = {
            side.name: until.enter_context(closing(open_object_client(side, max_in_flight=AT_ONCE)))
            for side in (plan.legacy, plan.production)
        }
        ask = partial(clients["legacy"].ask, tries=TRIES)
        try:
            with connect("estimate", autocommit=True) as connection:
                refuse_unfit_tables(connection, plan)
                counted = [count_entries(connection, ask, entries, most) for entries in plan.entries]
            counted += [count_objects(ask, part, most) for part in plan.objects]
            objects = list(dict.fromkeys(keys for each in counted for named in each.chosen for keys in named))
            for name, client in clients.items() if objects else ():
                refuse_first(check_bucket_exists(client, plan.side(name)))
            found, took = look_at(clients["legacy"], "legacy", [keys.legacy for keys in objects])
            there = [keys.production for keys, head in zip(objects, found, strict=True) if head is not None]
            copies, took_new = look_at(clients["production"], "production", there)
            copy_of = dict(zip(there, copies, strict=True))
            seen = {each: (head, copy_of.get(each.production)) for each, head in zip(objects, found, strict=True)}
            latency = {"legacy": median(took or [0.0]), "production": median(took_new or took or [0.0])}
            return counted, seen, latency
        except ObjectError as error:
            side = plan.side(error.side or "legacy")
            raise as_error(refuse(side, error, "read", "s3:GetObject and s3:ListBucket")) from error


def count_entries(connection: Connection, ask: Ask, entries: Entries, most: int) -> CountedEntries:
    """Return how many legacy entries a table has, and up to `most` of them, or folders with so many; two scans."""
    with translated_errors():
        queries = EntryQueries.of(connection, entries)
    try:
        with connection.transaction():
            count = fetch_one(connection, queries.compose("count_entries"), queries.parameters())["legacy"]
            query = queries.compose("sample_entries", wanted=queries.has_form("legacy"))
            rows = connection.execute(query, queries.parameters(most=most)).fetchall()
    except Error as error:
        raise as_error(describe_unscanned([entries], error)) from error
    chosen: list[tuple[ObjectKeys, ...]] = []
    for entry in to_entries(rows):
        if sum(map(len, chosen)) < most:
            chosen.append(_take_usable(_name_objects(ask, entries, entry)))
    return CountedEntries(entries, count, chosen)


def count_objects(ask: Ask, part: ObjectPrefix, most: int) -> CountedEntries:
    """Return how many objects have a prefix, and up to `most` of them."""
    keys, is_whole = _list(ask, part.prefix)
    some = Random(0).sample(keys, min(most, len(keys)))  # noqa: S311 - a sample, no secret
    return CountedEntries(
        part, len(keys), [_take_usable(map_object(key, part) for key in [each]) for each in some], is_whole
    )


def _name_objects(ask: Ask, entries: Entries, entry: Entry) -> Iterator[ObjectKeys]:
    """Yield the objects of an entry, or those in its folders. Raises ValueError for keys without production keys."""
    for named in map_entry(entry, entries).objects:
        keys = _list(ask, named.legacy)[0] if entries.names_folders else [named.legacy]
        yield from (map_object(key, entries) for key in keys)


def _take_usable(named: Iterable[ObjectKeys]) -> tuple[ObjectKeys, ...]:
    try:
        return tuple(named)
    except ValueError:
        return ()


def _list(ask: Ask, prefix: str) -> tuple[list[str], bool]:
    """Return the legacy keys that begin with a prefix, as far as they are listed in time, and whether that is all."""
    end = time.monotonic() + LISTED_SECONDS
    listed = list_range(
        ask, "legacy", prefix, prefix, None, most_keys=10**6, is_enough=lambda _: time.monotonic() > end
    )
    return listed.keys, listed.next is None


def look_at(client: ObjectClient, side: SideName, keys: Sequence[str]) -> tuple[list[Response | None], list[float]]:
    """Return the headers of each object, None where it is not there, and the seconds that each of the first took alone.

    Raises the ObjectError of one that may not be looked at.
    """
    heads, took = [head_object(side, key) for key in keys], list[float]()
    seen: list[Response | ObjectError] = []
    for head in heads[:TIMED]:
        began = time.monotonic()
        seen += _refuse(event_loop.run(send_many(client.send, [head], at_once=1)))
        took.append(time.monotonic() - began)
    seen += _refuse(event_loop.run(send_many(client.send, heads[TIMED:], at_once=AT_ONCE)))
    return [found if isinstance(found, Response) else None for found in seen], took


def _refuse(seen: Sequence[Response | ObjectError]) -> Sequence[Response | ObjectError]:
    """Return what was seen. Raises the first error but for that of an object that is not there."""
    for found in seen:
        if isinstance(found, ObjectError) and not isinstance(found, ObjectNotFound):
            raise found
    return seen
