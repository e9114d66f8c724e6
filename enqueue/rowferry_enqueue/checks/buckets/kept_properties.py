"""Checks sampled objects that stand in production already: whether they have the properties of their legacy objects."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing

from rowferry.errors import ObjectError
from rowferry.formatting import count
from rowferry.http import event_loop
from rowferry.plan import Plan, SideName
from rowferry.s3.client import ObjectClient, open_object_client
from rowferry.s3.operations import get_object_tagging, head_object
from rowferry.s3.properties import content_headers, find_lost_content
from rowferry.s3.responses import Response, read_tags
from rowferry.s3.results import read_tag_count
from rowferry.s3.retry import send_with_retries
from rowferry_enqueue.checks.buckets.taken_keys import compare_pair
from rowferry_enqueue.checks.finding import Finding, note, quote_key

AT_ONCE = 16
"""Pairs of objects that are compared side by side."""
Heads = dict[tuple[str, str], Response]
Clients = Mapping[SideName, ObjectClient]
REMEDY = "`rowferry migrate` keeps them as they are; `rowferry verify --repair` copies them again afterwards"


def check_kept_properties(plan: Plan, heads: Heads) -> Iterator[Finding]:
    """Yield how many sampled objects will be kept for their bytes though they have other properties, and an example.

    `heads`: the HEAD of each legacy object, by its key and the production key that it becomes.
    """
    if not heads:
        return
    with ExitStack() as stack:
        clients: Clients = {
            side.name: stack.enter_context(closing(open_object_client(side, max_in_flight=AT_ONCE)))
            for side in (plan.legacy, plan.production)
        }
        results = event_loop.run(_compare_all(clients, plan, heads))
    kept = {key: lost for (_, key), lost in zip(heads, results, strict=True) if lost is not None}
    others = {key: lost for key, lost in kept.items() if lost}
    if others:
        key, lost = next(iter(others.items()))
        things = count(len(kept), "sampled object that stands", "sampled objects that stand")
        what = f"of {things} in production already, with the right bytes, {count(len(others), 'has', 'have')}"
        yield note(f"{what} other properties, for example {quote_key(key)}: {'; '.join(lost)}", REMEDY)


async def _compare_all(clients: Clients, plan: Plan, heads: Heads) -> list[list[str] | None]:
    room = asyncio.Semaphore(AT_ONCE)

    async def compare(keys: tuple[str, str], legacy: Response) -> list[str] | None:
        async with room:
            return await _find_lost(clients, plan, keys, legacy)

    return await asyncio.gather(*[compare(keys, legacy) for keys, legacy in heads.items()])


async def _find_lost(clients: Clients, plan: Plan, keys: tuple[str, str], legacy: Response) -> list[str] | None:
    """Return what a production object lacks of its legacy object; None where it will not be kept.

    An object without tags is not said to lack them: a migration gives it those of the legacy object.
    """
    production = clients["production"]
    try:
        existing = await send_with_retries(production.send, head_object("production", keys[1]))
        likeness = await compare_pair(clients["legacy"], production, keys, legacy, existing)
    except ObjectError:  # it is not there, or cannot be read, of which other checks tell
        return None
    if likeness != "identical":
        return None
    lost = find_lost_content(legacy, existing, content_headers(plan.production))
    if plan.production.tags == "copy" and read_tag_count(legacy):
        tags = [await _fetch_tags(clients[side], side, key) for side, key in zip(clients, keys, strict=True)]
        if tags[1] and tags[0] != tags[1]:
            lost.append("its tags are not those of the legacy object")
    return lost


async def _fetch_tags(client: ObjectClient, side: SideName, key: str) -> dict[str, str]:
    """Return the tags of an object; none where they cannot be read."""
    try:
        return dict(read_tags((await send_with_retries(client.send, get_object_tagging(side, key))).body))
    except ObjectError:
        return {}
