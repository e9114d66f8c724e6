"""Are two objects the same? By size, by ETag where it means something, else by their bytes."""

import hashlib
import re
from typing import NamedTuple

from rowferry.errors import ObjectDamaged
from rowferry.plan import SideName
from rowferry.s3.operations import Request, get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import ContentRange, read_content_range
from rowferry_worker.objects.own_copies import KnownCopies
from rowferry_worker.objects.requests import ObjectRequests, demand, object_changed, read_etag, size_of

RANGE_BYTES = 4 * 1024 * 1024
"""How much of an object is read at a time when its bytes have to be compared."""

CHECKSUMS = tuple(f"x-amz-checksum-{name}" for name in ("sha256", "crc64nvme", "sha1", "crc32c", "crc32"))
"""The headers in which a server may tell an object's checksum, the strongest first."""

DIGEST = re.compile(r"[0-9a-f]{32}")
"""Of one part: an MD5, in hexadecimal."""
_DIGEST = re.compile(r"[0-9a-f]{32}(-\d+)?")


class Pair(NamedTuple):
    """A legacy object and a production object, by their keys and headers."""

    legacy_key: str
    legacy: Response
    production_key: str
    production: Response


async def are_same(s3: ObjectRequests, pair: Pair, copies: KnownCopies, *, deep: bool = False) -> bool:
    """Return whether two objects have the same bytes; `deep`: read them in any case.

    Metadata is not compared. By size, by ETag where it means something, by a checksum that both servers know, by what
    is remembered of a copy by parts, else by reading both. Raises ServerFault when one of them is rewritten meanwhile.
    """
    legacy_key, legacy, production_key, production = pair
    if size_of(legacy) != size_of(production):
        return False
    if not deep:
        same = compare_headers(legacy, production)
        if same is None:
            same = await _compare_checksums(s3, pair)
        if same is not None:
            return same
        if await copies.is_known_copy(legacy_key, legacy.etag or "", production_key, production.etag or ""):
            return True
    legacy_digest = await read_digest(s3, "legacy", legacy_key, legacy)
    return legacy_digest == await read_digest(s3, "production", production_key, production)


def compare_headers(legacy: Response, production: Response) -> bool | None:
    """Return whether two objects have the same bytes, as far as their headers tell; None where they leave that open."""
    if size_of(legacy) != size_of(production):
        return False
    if is_digest(legacy) and legacy.etag == production.etag:
        return True
    return False if md5_of(legacy) and md5_of(production) else None


async def _compare_checksums(s3: ObjectRequests, pair: Pair) -> bool | None:
    """Return whether the objects have the same checksum; None where the servers know none of one kind."""
    first = await _read_checksums(s3, "legacy", pair.legacy_key, pair.legacy)
    if not first:
        return None
    second = await _read_checksums(s3, "production", pair.production_key, pair.production)
    return next((first[name] == second[name] for name in CHECKSUMS if name in first and name in second), None)


async def _read_checksums(s3: ObjectRequests, side: SideName, key: str, seen: Response) -> dict[str, str]:
    """Return the checksums of the whole object, by their headers.

    Source: Amazon S3 User Guide, "Checking object integrity": only a FULL_OBJECT checksum says something of the bytes
    independent of its parts.
    """
    response = await s3.head(side, key, if_match=seen.etag, with_checksum=True)
    if response.headers.get("x-amz-checksum-type") != "FULL_OBJECT":
        return {}
    return {name: response.headers[name] for name in CHECKSUMS if name in response.headers}


def md5_of(response: Response) -> str | None:
    """Return the MD5, in hexadecimal, that an object's ETag is; None where the ETag is something else.

    It is one for objects written in a single part and not encrypted with KMS or a customer's key.
    Source: Amazon S3 API Reference, "Object", ETag.
    """
    etag = response.etag
    return etag if etag and not is_encrypted(response) and DIGEST.fullmatch(etag) else None


def is_digest(response: Response) -> bool:
    """Return whether an object's ETag is made of its bytes, in one part or several: two that are equal say the same."""
    return response.etag is not None and not is_encrypted(response) and _DIGEST.fullmatch(response.etag) is not None


def is_encrypted(response: Response) -> bool:
    """Return whether an object is encrypted in a way that makes its ETag something else than a digest of its bytes."""
    return (
        response.headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
        or "x-amz-server-side-encryption-customer-algorithm" in response.headers
    )


async def read_digest(s3: ObjectRequests, side: SideName, key: str, seen: Response) -> bytes:
    """Return the SHA-256 of the object whose headers are given, read range by range; memory is bounded by one of them.

    Raises ServerFault when the object is rewritten meanwhile, ObjectDamaged when other bytes come than were asked for.
    """
    digest = hashlib.sha256()
    size_bytes = size_of(seen)
    for first in range(0, size_bytes, RANGE_BYTES):
        last = min(first + RANGE_BYTES, size_bytes) - 1
        digest.update(await read_range(s3, side, key, seen, first=first, last=last))
    return digest.digest()


async def read_range(s3: ObjectRequests, side: SideName, key: str, seen: Response, *, first: int, last: int) -> bytes:
    """Return the bytes from `first` to `last`, both included, of the object that `seen` (its HEAD) describes.

    Raises ServerFault when it was rewritten meanwhile or that cannot be told, ObjectDamaged when the response holds
    any other bytes.
    """
    request = get_object(side, key, first_byte=first, last_byte=last, if_match=seen.etag)
    response = await s3.send_pinned(request)
    check_range(seen, request, response, first=first, last=last)
    return response.body


def check_range(seen: Response, request: Request, response: Response, *, first: int, last: int) -> None:
    """Return where the body of a response is, or will be, those bytes of the object that `seen` (its HEAD) describes.

    Raises as `read_range`.
    """
    if response.etag is not None and response.etag != seen.etag:
        # Not every server heeds If-Match.
        raise object_changed(request.side, request.key)
    came, size_bytes = _range_of(response), size_of(seen)
    if came is None or (came.first, came.last) != (first, last) or came.total not in {None, size_bytes}:
        raise ObjectDamaged("WrongRange", f"asked for were bytes {first}-{last}/{size_bytes}, {came} came")
    if response.body_bytes != last - first + 1:
        raise ObjectDamaged("TruncatedBody", f"{response.body_bytes} bytes came of {last - first + 1}")
    demand(read_etag, response, request)


def _range_of(response: Response) -> ContentRange | None:
    """Return which bytes a response has; None where it does not say so in a way that can be read."""
    if response.status == 206:
        return read_content_range(response)
    # The server has not heard of ranges: this is the whole object.
    return ContentRange(0, response.body_bytes - 1, response.body_bytes)
