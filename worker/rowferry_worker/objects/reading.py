"""Reads a range of an object, pinned to the version that a first look saw, and takes no other bytes for it."""

from rowferry.errors import ObjectDamaged
from rowferry.plan import SideName
from rowferry.s3.operations import get_object
from rowferry.s3.responses import Answer
from rowferry.s3.results import ContentRange, read_content_range
from rowferry_worker.objects.journey import Steps, ask_pinned, changed, demand, read_etag, size_of


def read_range(side: SideName, key: str, seen: Answer, first: int, last: int) -> Steps[bytes]:
    """Return the bytes from `first` to `last`, both included, of the object that `seen` (its HEAD) describes.

    Raises ServerFault when it was rewritten meanwhile or nobody can tell, ObjectDamaged when the answer
    holds any other bytes.
    """
    request = get_object(side, key, first_byte=first, last_byte=last, if_match=seen.etag)
    answer = yield from ask_pinned(request)
    if answer.etag is not None and answer.etag != seen.etag:
        # Not every server heeds If-Match.
        raise changed(side, key)
    came, size_bytes = _range_of(answer), size_of(seen)
    if came is None or (came.first, came.last) != (first, last) or came.total not in {None, size_bytes}:
        raise ObjectDamaged("WrongRange", f"asked for were bytes {first}-{last}/{size_bytes}, {came} came")
    if len(answer.body) != last - first + 1:
        raise ObjectDamaged("TruncatedBody", f"{len(answer.body)} bytes came of {last - first + 1}")
    demand(read_etag, answer, request)
    return answer.body


def _range_of(answer: Answer) -> ContentRange | None:
    """Return which bytes an answer has; None where it does not say so in a way that can be read."""
    if answer.status == 206:
        return read_content_range(answer)
    # The server has not heard of ranges: this is the whole object.
    return ContentRange(0, len(answer.body) - 1, len(answer.body))
