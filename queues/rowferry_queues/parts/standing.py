"""What stands at the production key of a large object, and what that means for its copy. Pure."""

from typing import Literal

from rowferry.s3.clocks import Skew, put_in_order
from rowferry.s3.responses import Response
from rowferry_queues.parts.spec import Replaces
from rowferry_worker.objects.compare import compare_headers
from rowferry_worker.objects.own_copies import KnownCopy
from rowferry_worker.objects.requests import size_of

Standing = Literal["nothing", "same", "own", "older", "different", "unknown"]
"""No object; one with the bytes of the legacy object; a copy of ours of what the legacy object was before; another one,
older than the legacy object; another one; one of the same size whose headers leave that open."""


def judge_standing(seen: Response, existing: Response | None, known: KnownCopy | None, skew: Skew) -> Standing:
    """Return what stands at the production key.

    `seen`, `existing`: the headers of the legacy and the production object; `known`: what is remembered of an earlier
    copy of this legacy object; `skew`: by how much the clocks of the two servers differ.
    """
    if existing is None:
        return "nothing"
    if known is not None and (known.etag, known.size_bytes) == (existing.etag, size_of(existing)):
        return "same" if known.source_etag == seen.etag else "own"
    same = compare_headers(seen, existing)
    if same is None:
        return "unknown"
    if same:
        return "same"
    return "older" if put_in_order(seen, existing, skew) == "newer" else "different"


def may_replace(standing: Standing, replaces: Replaces) -> bool:
    """Return whether the copy may take the place of what stands there; of an object that is the same, never."""
    return standing == "nothing" or (standing == "own" and replaces != "nothing") or standing == replaces == "older"
