"""How many S3 requests a worker makes for one object, by what was found about it. Pure.

tests/cli/test_estimate_requests.py holds each case against the requests of a real worker, so that a
change of the worker that is not made here fails there.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from rowferry.batch import DEFAULT_BATCH_SIZE
from rowferry.plan import Plan, SideName
from rowferry.s3.listings.keys import PAGE_KEYS
from rowferry.s3.properties import content_headers, storage_headers
from rowferry_worker.copying.transfer import (
    COPY_LIMIT_BYTES,
    COPY_PART_BYTES,
    SMALLEST_PART_BYTES,
    STREAM_PART_BYTES,
    limit_part,
    limit_put,
)
from rowferry_worker.multipart.upload import part_size
from rowferry_worker.objects.compare import RANGE_BYTES
from rowferry_worker.properties.tags import ASKED_AGAIN, ASKED_FIRST

Operation = tuple[SideName, str]
"""A side, and the name of an S3 operation. CopyObject and UploadPartCopy count as the production side's."""
RequestCounts = Counter[Operation]

Existing = Literal["none", "identical", "different", "unclear"]
"""What stands at the production key, by size and ETag; unclear: only its bytes would tell."""


@dataclass(frozen=True, slots=True)
class SampledObject:
    """What one look at both sides has shown of the object of an entry."""

    size_bytes: int = 0
    is_missing: bool = False
    """Whether there is no legacy object."""
    tags: int = 0
    """How many tags the legacy object has."""
    existing: Existing = "none"
    has_existing_tags: bool = False
    has_multipart_etag: bool = False
    has_md5: bool = True
    """Whether the legacy ETag is the MD5 of its bytes; a larger object then goes in one PUT."""

    @property
    def is_copied(self) -> bool:
        """Return whether the migration would copy it."""
        return not self.is_missing and self.existing == "none"


@dataclass(frozen=True, slots=True)
class CopyMode:
    """How a worker that has learned what its servers do copies the objects of a plan, with `--on-conflict fail`."""

    server_side: bool
    threshold_bytes: int | None = None
    """`multipart_threshold_bytes` of the plan."""
    honours_condition: bool = True
    """Whether the production server honours If-None-Match on the ordinary write; else each write costs a HEAD."""
    announces_tags: bool = True
    """Whether the legacy server tells in a HEAD how many tags an object has; else each object is asked for them."""
    expects_existing: bool = False
    """Whether most objects are at their production keys already: a streaming worker then looks before it reads."""

    acl: Literal["none", "copied", "set"] = "none"
    """What the plan says of ACLs."""
    tags: Literal["copied", "none", "set"] = "copied"
    """What it says of tags."""
    tells_metadata: bool = False
    """Whether it sets content headers: the server then copies no metadata by itself, so they are read before."""
    sets_headers: bool = False
    """Whether it says anything that a HEAD of a production object shows."""

    immutable: bool = False
    """Whether the plan says that no legacy object is ever overwritten."""

    @classmethod
    def of(cls, plan: Plan, **known: bool) -> "CopyMode":
        side = plan.production
        content, storage = content_headers(side), storage_headers(side)
        return cls(
            plan.server_side,
            plan.migration.multipart_threshold_bytes,
            acl="none" if side.acl is None else "copied" if side.acl == "copy" else "set",
            tags="copied" if side.tags == "copy" else "none" if side.tags == "none" else "set",
            tells_metadata=bool(content),
            sets_headers=bool(content or storage),
            immutable=plan.legacy.immutable,
            **known,
        )

    @property
    def write(self) -> str:
        """Return the operation that writes objects of an ordinary size."""
        return "CopyObject" if self.server_side else "PutObject"

    @property
    def part_bytes(self) -> int:
        """Return the most bytes of a streamed object that are read at once."""
        return limit_part(self.threshold_bytes)


def count_requests(seen: SampledObject, mode: CopyMode) -> RequestCounts:
    """Return the requests that one attempt makes for one object once the worker knows its servers."""
    counts: RequestCounts = Counter()
    (_count_server_copy if mode.server_side else _count_stream)(seen, mode, counts)
    if not mode.immutable and not seen.is_missing and seen.existing != "different":
        counts["legacy", "HeadObject"] += 1  # once more before the row moves: it may have been rewritten meanwhile
    return counts


def count_overhead(entries: int, mode: CopyMode, *, any_tagged: bool) -> RequestCounts:
    """Return the requests by which one worker gets to know its servers, on top of those of its objects.

    The first object is looked at, written once more under the condition, and objects without announced tags are asked
    for some.
    """
    counts: RequestCounts = Counter()
    if not entries:
        return counts
    counts["production", "HeadObject"] += 2 if mode.honours_condition else 1
    counts["production", mode.write] += 1
    if not mode.server_side:
        counts["legacy", "GetObject"] += 1
    counts["production", "HeadObject"] += mode.sets_headers
    counts["production", "GetObjectAcl"] += mode.acl != "none"
    counts["legacy", "GetObjectAcl"] += mode.acl == "copied"
    counts["legacy", "HeadObject"] += mode.server_side and mode.tells_metadata
    if mode.tags == "set":
        counts["production", "GetObjectTagging"] += 1
    elif mode.tags == "none" and not mode.server_side:
        pass
    elif not any_tagged:
        asked = entries if mode.server_side else entries + 1  # the streamed copy of the condition's test asks as well
        looks = min(asked, ASKED_FIRST) + max(0, asked - ASKED_FIRST) // ASKED_AGAIN
        counts["legacy", "GetObjectTagging"] += looks
        counts["production", "GetObjectTagging"] += looks if mode.tags == "none" else 0
    else:
        counts["legacy", "GetObjectTagging"] += 1
        counts["production", "GetObjectTagging"] += 1
    return counts


def count_listing(objects: int) -> RequestCounts:
    """Return the requests that list objects without rows: all of them once, then each range, and its first key."""
    pages, ranges = -(-objects // PAGE_KEYS), -(-objects // DEFAULT_BATCH_SIZE)
    return Counter({("legacy", "ListObjectsV2"): max(1, pages) + 2 * ranges})


def bytes_read(seen: SampledObject, mode: CopyMode) -> int:
    """Return the bytes of body that the worker reads from the legacy side."""
    if seen.is_missing:
        return 0
    if seen.existing == "unclear":
        return seen.size_bytes
    is_looked_at_first = mode.expects_existing or not _is_small(seen, mode)
    is_read = not mode.server_side and (seen.existing == "none" or not is_looked_at_first)
    return seen.size_bytes if is_read else 0


def bytes_written(seen: SampledObject) -> int:
    """Return the bytes that the production side has more in the end."""
    return seen.size_bytes if seen.is_copied else 0


def _count_server_copy(seen: SampledObject, mode: CopyMode, counts: RequestCounts) -> None:
    if mode.threshold_bytes is not None or mode.tells_metadata:
        counts["legacy", "HeadObject"] += 1
        if seen.is_missing:
            counts["legacy", "HeadObject"] += 1  # once more: its 404 could be anybody's
            return
        if mode.threshold_bytes is not None and seen.size_bytes > mode.threshold_bytes:
            _count_parts(seen, mode, counts, is_looked_at=False)
            return
    counts["legacy", "GetObjectAcl"] += mode.acl == "copied"
    if mode.acl == "copied" and seen.is_missing:
        return
    if not mode.honours_condition and _count_look(seen, mode, counts):
        return
    counts["production", "CopyObject"] += 1
    if seen.is_missing:
        return
    if seen.existing != "none":
        _count_look(seen, mode, counts)
    elif seen.size_bytes > COPY_LIMIT_BYTES:
        counts["legacy", "HeadObject"] += 1
        _count_parts(seen, mode, counts, is_looked_at=not mode.honours_condition)


def _count_stream(seen: SampledObject, mode: CopyMode, counts: RequestCounts) -> None:
    if mode.expects_existing and _count_look(seen, mode, counts):
        return
    counts["legacy", "GetObject"] += 1
    if seen.is_missing:
        return
    if not _is_small(seen, mode):
        counts["legacy", "HeadObject"] += 1
        _count_parts(seen, mode, counts, is_looked_at=mode.expects_existing)
        return
    is_long = seen.size_bytes > STREAM_PART_BYTES
    if is_long and not mode.expects_existing and _count_look(seen, mode, counts):
        return
    _count_properties(seen, mode, counts)
    if not mode.honours_condition and _count_look(seen, mode, counts):
        return
    counts["production", "PutObject"] += 1
    if seen.existing != "none":
        _count_look(seen, mode, counts)


def _count_parts(seen: SampledObject, mode: CopyMode, counts: RequestCounts, *, is_looked_at: bool) -> None:
    """Count a multipart upload, before which the production key is looked at unless it was."""
    _count_properties(seen, mode, counts)
    if not is_looked_at and _count_look(seen, mode, counts):
        return
    parts = count_parts(seen, mode)
    counts["production", "CreateMultipartUpload"] += 1
    if mode.server_side:
        counts["production", "UploadPartCopy"] += parts
        counts["legacy", "HeadObject"] += 1
        counts["production", "HeadObject"] += 1
    else:
        counts["legacy", "GetObject"] += parts
        counts["production", "UploadPart"] += parts
        counts["production", "GetObjectTagging"] += _has_tags(seen, mode)
    counts["production", "HeadObject"] += 1
    counts["production", "CompleteMultipartUpload"] += 1


def count_parts(seen: SampledObject, mode: CopyMode) -> int:
    """Return the parts of an object that is too large for one request."""
    if mode.server_side:
        wanted = min(COPY_PART_BYTES, mode.threshold_bytes or COPY_PART_BYTES)
    else:
        wanted = min(mode.part_bytes, SMALLEST_PART_BYTES) if seen.has_md5 else mode.part_bytes
    return max(1, -(-seen.size_bytes // part_size(seen.size_bytes, wanted)))


def _count_properties(seen: SampledObject, mode: CopyMode, counts: RequestCounts) -> None:
    """Count what is asked about the properties of a legacy object besides its headers."""
    counts["legacy", "GetObjectTagging"] += mode.tags == "copied" and (bool(seen.tags) or not mode.announces_tags)
    counts["legacy", "GetObjectAcl"] += mode.acl == "copied"


def _has_tags(seen: SampledObject, mode: CopyMode) -> bool:
    """Return whether the production object shall have tags."""
    return mode.tags == "set" or (mode.tags == "copied" and bool(seen.tags))


def _count_look(seen: SampledObject, mode: CopyMode, counts: RequestCounts) -> bool:
    """Count a look at the production key; return whether an object is there, which is compared then."""
    counts["production", "HeadObject"] += 1
    if seen.existing == "none":
        return False
    _count_comparison(seen, mode, counts)
    return True


def _count_comparison(seen: SampledObject, mode: CopyMode, counts: RequestCounts) -> None:
    """Count how an existing production object is compared, its tags mended, and its ACL looked at."""
    counts["legacy", "HeadObject"] += 1
    if seen.existing == "unclear":
        counts["legacy", "HeadObject"] += 1  # asks for a checksum
        for side in ("legacy", "production"):
            counts[side, "GetObject"] += -(-seen.size_bytes // RANGE_BYTES)
    if seen.existing == "different":
        return
    if _has_tags(seen, mode) and not seen.has_existing_tags:
        counts["legacy", "GetObjectTagging"] += mode.tags == "copied"
        counts["production", "GetObjectTagging"] += 1
        counts["production", "PutObjectTagging"] += 1
    counts["legacy", "GetObjectAcl"] += mode.acl == "copied"
    counts["production", "GetObjectAcl"] += mode.acl != "none"


def _is_small(seen: SampledObject, mode: CopyMode) -> bool:
    limit = COPY_LIMIT_BYTES if mode.server_side else limit_put(mode.threshold_bytes, has_md5=seen.has_md5)
    return seen.size_bytes <= limit
