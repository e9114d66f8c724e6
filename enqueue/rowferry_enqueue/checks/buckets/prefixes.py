"""Checks the [[objects]] of a plan: that the bucket lists them in order, and that no two objects become one."""

from collections.abc import Iterator
from itertools import combinations
from typing import Protocol

from rowferry.errors import ListingUnusable, ObjectError
from rowferry.keys import map_object
from rowferry.plan import ObjectPrefix, Plan, Side
from rowferry.s3.client import ObjectClient
from rowferry.s3.listings.keys import PAGE_KEYS, list_range
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import refuse
from rowferry_enqueue.checks.buckets.objects import list_first
from rowferry_enqueue.checks.finding import Finding, fine, note, part, problem, quote_key


class Mapping(Protocol):
    """The [[entries]] or [[objects]] of a plan: keys that begin with one prefix become keys with another."""

    @property
    def label(self) -> str: ...
    @property
    def legacy_object_prefix(self) -> str: ...
    @property
    def production_object_prefix(self) -> str: ...


def check_prefixes(client: ObjectClient, plan: Plan, *, may_be_empty: bool) -> Iterator[Finding]:
    """Yield the findings about the legacy bucket's listing, one page for each of the [[objects]]."""
    for objects in plan.objects:
        yield _look_at(client, plan.legacy, objects, may_be_empty=may_be_empty)
    for one, other in combinations((*plan.objects, *plan.entries), 2):
        if isinstance(one, ObjectPrefix):
            yield from _find_collision(client, plan.legacy, one, other)


def _look_at(client: ObjectClient, side: Side, objects: ObjectPrefix, *, may_be_empty: bool) -> Finding:
    """List a page of the objects."""
    label, prefix = objects.label, objects.prefix
    try:
        listed = list_range(
            lambda request: client.ask(request, tries=TRIES),
            "legacy",
            prefix,
            prefix,
            None,
            most_keys=PAGE_KEYS,
            is_enough=lambda page: page > 1,
        )
        example = map_object(listed.keys[0], objects) if listed.keys else None
    except ListingUnusable as error:
        remedy = "rename that object, which no client can list" if error.code == "BrokenListing" else ""
        return problem(f"{label}: no ranges can be cut from the listing of {side.bucket}: {error.message}", remedy)
    except ObjectError as error:
        return refuse(side, error, "listed", "s3:ListBucket")
    except ValueError as error:
        return part(f"{label}: an object will end as failed: {error}")
    if example is None:
        what = f"{label}: the legacy bucket has no object whose key begins with {quote_key(prefix)}"
        return note(what) if may_be_empty else problem(what, "correct `prefix` in the plan, or add --allow-empty")
    count = f"{len(listed.keys):,} objects" if listed.next is None else f"more than {len(listed.keys):,} objects"
    return fine(f"{label}: {count}, for example {quote_key(example.legacy)} becomes {quote_key(example.production)}")


def _find_collision(client: ObjectClient, side: Side, one: Mapping, other: Mapping) -> Iterator[Finding]:
    """Find legacy keys of the two that become one production key: below the longer of their production prefixes."""
    inner, outer = sorted((one, other), key=lambda each: -len(each.production_object_prefix))
    if not inner.production_object_prefix.startswith(outer.production_object_prefix):
        return
    rest = inner.production_object_prefix.removeprefix(outer.production_object_prefix)
    first, second = inner.legacy_object_prefix, outer.legacy_object_prefix + rest
    if first == second:
        return  # the same objects, at the same keys
    below = quote_key(inner.production_object_prefix)
    what = f"legacy keys that begin with {quote_key(first)} and with {quote_key(second)} become keys below {below}"
    labels = f"{inner.label} and {outer.label}"
    if list_first(client, side, first) is None or list_first(client, side, second) is None:
        yield note(f"{labels}: {what}; one of the two has no object now")
        return
    yield problem(f"{labels}: {what}, where two objects may meet", "give one of them another `to`")
