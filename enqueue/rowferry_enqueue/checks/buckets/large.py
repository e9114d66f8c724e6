"""Counts the objects that a server cannot take, since they would go by parts and it takes none."""

from collections.abc import Iterator
from contextlib import closing, suppress

from rowferry.errors import ObjectError, RowferryError
from rowferry.keys import object_prefixes
from rowferry.plan import Plan
from rowferry.s3.client import open_object_client
from rowferry.s3.cures import find_cure, refusal_of
from rowferry.s3.listings.keys import read_page
from rowferry.s3.operations import COPY_LIMIT_BYTES, PUT_LIMIT_BYTES, list_keys
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import explain, summarise_error
from rowferry_enqueue.checks.finding import Finding, note, part, problem

MOST_PREFIXES = 10
"""Of the plan, whose first 1,000 objects are looked at."""


def judge_large(plan: Plan, error: ObjectError) -> Iterator[Finding]:
    """Yield what it means that no object of parts can be written: how many of the first objects are so large.

    Nothing where the server refuses to copy parts of so small an object as the probe: Garage does, and copies others.
    """
    cure = find_cure(refusal_of(error), plan.production)
    if cure is not None and cure.case == "small-source":
        return
    most = plan.migration.multipart_threshold_bytes or (COPY_LIMIT_BYTES if plan.server_side else PUT_LIMIT_BYTES)
    limit = f"{most / 1024**2:,.0f} MiB"
    what = f"an object of parts cannot be written ({summarise_error(error)})"
    stream = 'set `transfer = "stream"` in the plan' if plan.server_side else "use a server that takes parts"
    if plan.migration.multipart_threshold_bytes is not None:
        stream = "leave multipart_threshold_bytes out, or use a server that takes parts"
    remedy = explain(plan.production, error) or stream
    sizes = list_sizes(plan)
    large = sum(size > most for size in sizes)
    if not sizes:
        yield part(f"{what}: objects of more than {limit} will fail", remedy)
    elif not large:
        yield note(f"{what}, as those of more than {limit} are; none of {len(sizes):,} sampled objects is", remedy)
    else:
        are = "object is" if len(sizes) == 1 else "objects are"
        counted = f"{large:,} of {len(sizes):,} sampled {are} larger than this server takes in one piece"
        level = problem if large == len(sizes) else part
        yield level(f"{what}: {counted} ({limit})", remedy)


def list_sizes(plan: Plan) -> list[int]:
    """Return the sizes of the first legacy objects below each prefix; none where they may not be listed."""
    sizes: dict[str, int] = {}
    with suppress(RowferryError), closing(open_object_client(plan.legacy, max_in_flight=1)) as client:
        for prefix in list(dict.fromkeys(object_prefixes(plan.parts, "legacy")))[:MOST_PREFIXES]:
            page = read_page(client.ask(list_keys("legacy", prefix), tries=TRIES))
            sizes |= {each.key: int(each.size or 0) for each in page.objects}
    return list(sizes.values())
