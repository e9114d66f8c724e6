"""Compares objects of both buckets: where production entries have the key that a legacy entry is to have already, and
where rows are to go back to legacy objects.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from rowferry.db.connection import Connection
from rowferry.db.entries import EntryQueries
from rowferry.errors import ObjectNotFound, RowferryError
from rowferry.formatting import count
from rowferry.http import event_loop
from rowferry.plan import OnConflict, Plan
from rowferry.progress import OnProgress
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry.s3.clocks import written_at
from rowferry.s3.operations import get_object, head_object
from rowferry.s3.responses import Response
from rowferry.s3.retry import send_with_retries
from rowferry_enqueue.checks.finding import Finding, fine, note, problem, quote_key
from rowferry_enqueue.checks.rows.pairs import Pair, find_colliding_pairs, read_meeting_keys
from rowferry_enqueue.checks.rows.scans import scan

MAX_COMPARED = 1000
"""Collisions whose objects are compared, by one HEAD on either side."""
MAX_READ_BYTES = 1024 * 1024
"""Larger objects are not read where HEAD does not tell whether they are alike."""
AT_ONCE = 16
"""Pairs of objects that are compared side by side."""

Likeness = Literal["identical", "different", "undecided", "no legacy object", "no production object"]
T = TypeVar("T")
Keys = tuple[str, str]
"""A legacy key and the production key that it becomes."""


class Compared(NamedTuple):
    """Two objects, as far as HEAD tells, and the bytes of small ones."""

    likeness: Likeness
    is_newer: bool = False
    """Whether the production object was written last, by the servers' own clocks."""


def check_taken_keys(
    connection: Connection, plan: Plan, usable: Sequence[EntryQueries], on_conflict: OnConflict, on_progress: OnProgress
) -> Iterator[Finding]:
    """Yield what exists already at the production keys of legacy entries.

    That alone is no problem: a resumed migration has rows that share an object with a row that has moved.
    """
    collisions: dict[Keys, None] = {}
    totals: list[int] = []

    def look(pair: Pair) -> list[Finding]:
        found, number = _find_collisions(connection, pair)
        collisions.update(dict.fromkeys(found))
        totals.append(number)
        return []

    unscanned: list[Finding] = []
    for pair in find_colliding_pairs(usable):
        on_progress("looking for production entries in the way")
        unscanned += scan(connection, partial(look, pair), *pair)
    yield from unscanned
    total = sum(totals)
    if not total:
        if usable and not unscanned:
            yield fine("no production entry has a key that a legacy entry is to have")
        return
    try:
        compared = compare_objects(plan, list(collisions)[:MAX_COMPARED], on_progress)
    except RowferryError as error:
        yield note(f"{_describe(total)} that production entries have already; not compared ({error})")
    else:
        likeness: dict[Keys, Likeness] = {keys: found.likeness for keys, found in compared.items()}
        yield from _judge(total, likeness, on_conflict)


def _find_collisions(connection: Connection, pair: Pair) -> tuple[list[Keys], int]:
    """Return the first collisions of a pair, and how many there are."""
    rows = read_meeting_keys(connection, pair, "production_key", form="production", most=MAX_COMPARED)
    return [(row["legacy_key"], row["production_key"]) for row in rows], rows[0]["total"] if rows else 0


def compare_objects(plan: Plan, collisions: list[Keys], on_progress: OnProgress) -> dict[Keys, Compared]:
    """Return how alike the two objects of each pair of keys are."""
    on_progress(f"comparing {len(collisions):,} pairs of objects")
    return ask_about_pairs(plan, collisions, _compare_one)


def ask_about_pairs(
    plan: Plan, pairs: Collection[Keys], ask: Callable[[ObjectClient, ObjectClient, Keys], Awaitable[T]]
) -> dict[Keys, T]:
    """Return what `ask` finds of each pair of keys, from a client of the legacy and one of the production side."""
    with ExitStack() as stack:
        legacy, production = (
            stack.enter_context(closing(open_object_client(side, max_in_flight=AT_ONCE)))
            for side in (plan.legacy, plan.production)
        )
        room = asyncio.Semaphore(AT_ONCE)

        async def ask_in_turn(keys: Keys) -> T:
            async with room:
                return await ask(legacy, production, keys)

        async def ask_all() -> list[T]:
            return await asyncio.gather(*[ask_in_turn(keys) for keys in pairs])

        return dict(zip(pairs, event_loop.run(ask_all()), strict=True))


async def _compare_one(legacy: ObjectClient, production: ObjectClient, keys: Keys) -> Compared:
    try:
        old = await send_with_retries(legacy.send, head_object("legacy", keys[0]))
    except ObjectNotFound:
        return Compared("no legacy object")
    try:
        new = await send_with_retries(production.send, head_object("production", keys[1]))
    except ObjectNotFound:
        return Compared("no production object")
    likeness = await compare_pair(legacy, production, keys, old, new)
    before, after = written_at(old), written_at(new)
    is_newer = likeness == "different" and before is not None and after is not None and before < after
    return Compared(likeness, is_newer)


async def compare_pair(
    legacy: ObjectClient, production: ObjectClient, keys: Keys, old: Response, new: Response
) -> Likeness:
    """Return how alike two objects are, by their HEADs; small ones are read where these do not tell."""
    likeness = compare_heads(old, new)
    if likeness == "undecided" and (old.content_length or 0) <= MAX_READ_BYTES:
        one = await send_with_retries(legacy.send, get_object("legacy", keys[0]))
        other = await send_with_retries(production.send, get_object("production", keys[1]))
        likeness = "identical" if one.body == other.body else "different"
    return likeness


def compare_heads(old: Response, new: Response) -> Likeness:
    """Return whether two objects are alike, from size and ETag alone.

    ETags that differ prove nothing: after a copy from several parts, or under KMS, they do for the same bytes.
    """
    if old.content_length != new.content_length:
        return "different"
    return "identical" if old.etag == new.etag else "undecided"


def _describe(total: int) -> str:
    return count(total, "legacy key becomes one", "legacy keys become some")


def _judge(total: int, likeness: dict[Keys, Likeness], on_conflict: OnConflict) -> Iterator[Finding]:
    counts = Counter(likeness.values())
    results = ", ".join(f"{number:,} {name}" for name, number in counts.most_common())
    what = f"{_describe(total)} that production entries have already; {len(likeness):,} compared: {results}"
    if not counts["different"]:
        yield note(what) if counts.total() > counts["identical"] else fine(what)
        return
    legacy_key, production_key = next(keys for keys, found in likeness.items() if found == "different")
    what += f"; for example {quote_key(legacy_key)} is not {quote_key(production_key)}"
    if on_conflict == "fail":
        yield problem(what, "they would end as conflicts; see --on-conflict of `rowferry enqueue`")
    else:
        yield note(f"{what} (--on-conflict {on_conflict})")
