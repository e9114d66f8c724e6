"""How large the parts of an upload are, and which bytes each has."""

from collections.abc import Iterator

from rowferry_worker.multipart.large import MAX_PARTS
from rowferry_worker.multipart.side_by_side import PartRange

COPY_PART_BYTES = 128 * 1024 * 1024
STREAM_PART_BYTES = 8 * 1024 * 1024
"""The most that is read at once: parts are larger only where an object of over 80 GB would make too many of them."""
SMALLEST_PART_BYTES = 5 * 1024 * 1024
"""Source: Amazon S3 User Guide, "Multipart upload limits"."""


def split_range(size_bytes: int, part_bytes: int) -> Iterator[PartRange]:
    """Yield the parts of an object, all of `part_bytes` but the last."""
    for number, first in enumerate(range(0, size_bytes, part_bytes), 1):
        yield PartRange(number, first, min(first + part_bytes, size_bytes) - 1)


def part_size(size_bytes: int, wanted_bytes: int, max_parts: int = MAX_PARTS) -> int:
    """Return the size of a part: `wanted_bytes`, or more where that would make over `max_parts` parts."""
    return max(wanted_bytes, -(-size_bytes // max_parts))
