"""What stands at the production key of a large object, and what that means for its copy. Pure."""

from typing import Literal

from rowferry.s3.responses import Response
from rowferry_queues.parts.spec import Replaces
from rowferry_worker.objects.compare import compare_headers, is_newer
from rowferry_worker.objects.requests import size_of
from rowferry_worker.objects.uploads import KnownCopy

Standing = Literal["nothing", "same", "own", "older", "different", "unknown"]
"""No object; one with the bytes of the legacy object; a copy of ours of what the legacy object was before; another one,
older than the legacy object; another one; one of the same size whose headers leave that open."""


def judge_standing(seen: Response, existing: Response | None, known: KnownCopy | None) -> Standing:
    """Return what stands at the production key.

    `seen`, `existing`: the headers of the legacy and the production object; `known`: what is remembered of an earlier
    copy of this legacy object.
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
    return "older" if is_newer(seen, existing) else "different"


def may_replace(standing: Standing, replaces: Replaces) -> bool:
    """Return whether the copy may take the place of what stands there; of an object that is the same, never."""
    return standing == "nothing" or (standing == "own" and replaces != "nothing") or standing == replaces == "older"
