"""Which parts of an unfinished upload the production server holds already."""

import logging
from collections.abc import Sequence

from rowferry.errors import AccessDenied, Cancelled, ObjectError, ObjectNotFound, ObjectRejected
from rowferry.s3.operations import list_parts
from rowferry.s3.results import ListedPart, read_parts
from rowferry_worker.objects.compare import DIGEST
from rowferry_worker.objects.completion import Part, Upload
from rowferry_worker.objects.large import LargeObjects
from rowferry_worker.objects.requests import ObjectRequests, demand
from rowferry_worker.objects.side_by_side import PartRange

_log = logging.getLogger(__name__)

GONE = frozenset({"NoSuchUpload", "UnreadableResponse"})
"""Error codes of ListParts by which an upload cannot be continued; any other that may pass is raised."""


async def list_sent_parts(
    s3: ObjectRequests, upload: Upload, ranges: Sequence[PartRange], large_objects: LargeObjects
) -> list[Part] | None:
    """Return the parts of an upload that the server holds in their right sizes, in order; None where it cannot tell.

    Parts of other sizes, and others than `ranges` has, are as good as not sent. A server that knows the upload, and
    does not tell its parts, will not tell them to the next attempt either: that is noted in `large_objects`.
    Raises ObjectError where the server cannot be asked now.
    """
    try:
        listed = await _list_all(s3, upload, most=len(ranges))
    except Cancelled:
        raise
    except ObjectError as error:
        if error.code not in GONE and not isinstance(error, ObjectRejected | ObjectNotFound | AccessDenied):
            raise
        fields = {"new_key": upload.large.target_key, "error": str(error)}
        _log.warning("an unfinished upload cannot be continued, so it begins anew", extra=fields)
        if error.code != "NoSuchUpload":
            large_objects.can_continue = False
        return None
    found = {part.number: part for part in listed}
    return [
        Part(part.number, held.etag, held.etag if DIGEST.fullmatch(held.etag) else None)
        for part in ranges
        if (held := found.get(part.number)) is not None and held.size_bytes == part.size_bytes and held.etag
    ]


async def _list_all(s3: ObjectRequests, upload: Upload, *, most: int) -> list[ListedPart]:
    """Return the parts of all pages; a server that lists the same page for ever is asked no further."""
    listed: list[ListedPart] = []
    after, follows = 0, True
    while follows and after < most:
        request = list_parts(upload.large.target_key, upload_id=upload.id, after=after)
        page, follows = demand(read_parts, await s3.send(request), request)
        page = [part for part in page if part.number > after]
        if not page:
            break
        listed += page
        after = max(part.number for part in page)
    return listed
