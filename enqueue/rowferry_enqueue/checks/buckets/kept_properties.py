"""Checks sampled objects that stand in production already: whether they have the properties of their legacy objects."""

from collections.abc import Iterator

from rowferry.errors import ObjectError
from rowferry.formatting import count
from rowferry.plan import Plan, SideName
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import get_object_tagging, head_object
from rowferry.s3.properties import content_headers, find_lost_content
from rowferry.s3.responses import Response, read_tags
from rowferry.s3.results import read_tag_count
from rowferry.s3.retry import send_with_retries
from rowferry_enqueue.checks.buckets.taken_keys import Keys, ask_about_pairs, compare_pair
from rowferry_enqueue.checks.finding import Finding, note, quote_key

Heads = dict[Keys, Response]
REMEDY = "`rowferry migrate` keeps them as they are; `rowferry verify --repair` copies them again afterwards"


def check_kept_properties(plan: Plan, heads: Heads) -> Iterator[Finding]:
    """Yield how many sampled objects will be kept for their bytes though they have other properties, and an example.

    `heads`: the HEAD of each legacy object, by its key and the production key that it becomes.
    """
    if not heads:
        return

    async def find_lost(legacy: ObjectClient, production: ObjectClient, keys: Keys) -> list[str] | None:
        return await _find_lost(legacy, production, plan, keys, heads[keys])

    kept = {key: lost for (_, key), lost in ask_about_pairs(plan, heads, find_lost).items() if lost is not None}
    others = {key: lost for key, lost in kept.items() if lost}
    if others:
        key, lost = next(iter(others.items()))
        things = count(len(kept), "sampled object that stands", "sampled objects that stand")
        what = f"of {things} in production already, with the right bytes, {count(len(others), 'has', 'have')}"
        yield note(f"{what} other properties, for example {quote_key(key)}: {'; '.join(lost)}", REMEDY)


async def _find_lost(
    legacy: ObjectClient, production: ObjectClient, plan: Plan, keys: Keys, seen: Response
) -> list[str] | None:
    """Return what a production object lacks of its legacy object; None where it will not be kept.

    An object without tags is not said to lack them: a migration gives it those of the legacy object.
    """
    try:
        existing = await send_with_retries(production.send, head_object("production", keys[1]))
        likeness = await compare_pair(legacy, production, keys, seen, existing)
    except ObjectError:  # it is not there, or cannot be read, of which other checks tell
        return None
    if likeness != "identical":
        return None
    lost = find_lost_content(seen, existing, content_headers(plan.production))
    if plan.production.tags == "copy" and read_tag_count(seen):
        tags = await _fetch_tags(production, "production", keys[1])
        if tags and tags != await _fetch_tags(legacy, "legacy", keys[0]):
            lost.append("its tags are not those of the legacy object")
    return lost


async def _fetch_tags(client: ObjectClient, side: SideName, key: str) -> dict[str, str]:
    """Return the tags of an object; none where they cannot be read."""
    try:
        return dict(read_tags((await send_with_retries(client.send, get_object_tagging(side, key))).body))
    except ObjectError:
        return {}
