"""The requests that an object costs, by method and form of the plan. Pure."""

from collections import Counter as Cost
from collections.abc import Sequence

from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry.s3.listings.keys import PAGE_KEYS
from rowferry.s3.operations import COPY_LIMIT_BYTES
from rowferry.s3.properties import content_headers
from rowferry.s3.responses import Response
from rowferry.s3.results import read_tag_count
from rowferry_cli.estimate.sample import SeenObject
from rowferry_worker.copying.stream_copy import limit_part, limit_put
from rowferry_worker.multipart.part_size import COPY_PART_BYTES, SMALLEST_PART_BYTES, STREAM_PART_BYTES, part_size
from rowferry_worker.objects.compare import RANGE_BYTES, compare_headers, md5_of
from rowferry_worker.objects.requests import size_of

COPY, COPY_PART = "production CopyObject", "production UploadPartCopy"
PUT, PUT_PART = "production PutObject", "production UploadPart"
BEGIN, COMPLETE = "production CreateMultipartUpload", "production CompleteMultipartUpload"
HEAD, GET, TAGS, ACL = (f"legacy {name}" for name in ("HeadObject", "GetObject", "GetObjectTagging", "GetObjectAcl"))
LIST, NEW_HEAD = "legacy ListObjectsV2", "production HeadObject"

REQUESTS = {
    "copy": [COPY],
    "copy by parts": [HEAD, BEGIN, NEW_HEAD, NEW_HEAD, COMPLETE, NEW_HEAD],
    "stream": [GET, PUT],
    "stream by parts": [GET, HEAD, BEGIN, NEW_HEAD, NEW_HEAD, COMPLETE, NEW_HEAD],
    "copy existing": [COPY, HEAD, NEW_HEAD],
    "stream existing": [HEAD, NEW_HEAD],
    "copy missing": [COPY, HEAD],
    "stream missing": [GET, HEAD],
}
"""Of an object, by what is done with it; its parts, tags, ACL, and the look before its row moves come to these.
A worker knows its servers by then: until it does, each process sends some 50 more."""


def count_entry(
    plan: Plan, part: Entries | ObjectPrefix, objects: Sequence[SeenObject], *, asks_tags: bool
) -> Cost[str]:
    """Return what an entry costs: requests by side and operation (`legacy HeadObject`), bytes, and kinds of objects.

    `asks_tags`: no object has announced tags, so that each is asked for its own.
    """
    in_folder, stays = isinstance(part, Entries) and part.names_folders, getattr(part, "rows", "stay") == "stay"
    tags = asks_tags and plan.production.tags == "copy"
    counted = (count_object(plan, seen, stays=stays, in_folder=in_folder, asks_tags=tags) for seen in objects)
    cost = sum(counted, Cost[str]())
    if in_folder:  # listed before and after, and once more where an object is in doubt
        cost[LIST] = (3 if cost[NEW_HEAD] else 2) * max(1, -(-len(objects) // PAGE_KEYS))
    return cost


def count_object(plan: Plan, seen: SeenObject, *, stays: bool, in_folder: bool, asks_tags: bool) -> Cost[str]:
    """Return what one object costs; `stays`: no row moves; `in_folder`: a listing tells whether it was rewritten."""
    (legacy, existing), wanted, method = seen, plan.production, "copy" if plan.server_side else "stream"
    is_first = plan.server_side and bool(content_headers(wanted) or plan.migration.multipart_threshold_bytes)
    cost = Cost({"all": 1, HEAD: is_first})
    if legacy is None:
        return cost + Cost(["missing", *REQUESTS[f"{method} missing"], *[NEW_HEAD] * stays])
    looks_again = plan.legacy.rewritten and not in_folder  # else few batches take so long that they look
    second_look = Cost([HEAD] * looks_again)
    if existing is not None:
        is_same, ranges = compare_headers(legacy, existing), -(-size_of(legacy) // RANGE_BYTES)
        if is_same is None:  # only their bytes tell
            cost += Cost({GET: ranges, "production GetObject": ranges, "egress_bytes": size_of(legacy)})
        cost += Cost(["existing", *REQUESTS[f"{method} existing"], *[TAGS] * asks_tags])
        return cost if stays or is_same is False else cost + second_look
    size_bytes, parts, streams = size_of(legacy), count_parts(plan, legacy), not plan.server_side
    has_tags = bool(read_tag_count(legacy))
    cost += Cost({"bytes": size_bytes, "egress_bytes": size_bytes * streams, "tagged": has_tags})
    cost += Cost({"in_parts": parts > 0, PUT_PART if streams else COPY_PART: parts, GET: parts * streams})
    cost += Cost(REQUESTS[f"{method} by parts" if parts else method]) + second_look
    cost += Cost({ACL: wanted.acl == "copy", NEW_HEAD: streams and not parts and size_bytes > STREAM_PART_BYTES})
    if (streams or parts) and (asks_tags or (wanted.tags == "copy" and has_tags)):
        cost += Cost([TAGS])
    return cost


def count_parts(plan: Plan, legacy: Response) -> int:
    """Return in how many parts an object goes; 0: in one request."""
    threshold, size_bytes, has_md5 = plan.migration.multipart_threshold_bytes, size_of(legacy), bool(md5_of(legacy))
    if plan.server_side:
        limit, part_bytes = threshold or COPY_LIMIT_BYTES, min(COPY_PART_BYTES, threshold or COPY_PART_BYTES)
    else:
        limit, part_bytes = limit_put(threshold, has_md5=has_md5), limit_part(threshold)
        part_bytes = min(part_bytes, SMALLEST_PART_BYTES) if has_md5 else part_bytes
    return -(-size_bytes // part_size(size_bytes, part_bytes)) if size_bytes > limit else 0
