"""Are two objects the same? By size, by ETag where it means something, else by their bytes."""

import hashlib
import re
from collections.abc import Generator

from rowferry.plan import SideName
from rowferry.s3_answer import Answer
from rowferry.s3_request import Request, get_object, head_object
from rowferry_worker.journey import ask

RANGE_BYTES = 4 * 1024 * 1024
"""How much of an object is read at a time when its bytes have to be compared."""

_MD5 = re.compile(r"[0-9a-f]{32}")


def is_same_object(legacy_key: str, production_key: str, production: Answer) -> Generator[Request, Answer, bool]:
    """Return whether the production object, whose headers are given, has the bytes of the legacy object.

    Metadata is not compared. Raises ObjectNotFound when there is no legacy object.
    """
    legacy = yield from ask(head_object("legacy", legacy_key))
    if legacy.content_length != production.content_length:
        return False
    if legacy.etag is not None and legacy.etag == production.etag:
        return True
    if md5_of(legacy) and md5_of(production):
        return False
    legacy_digest = yield from _digest("legacy", legacy_key, legacy)
    return legacy_digest == (yield from _digest("production", production_key, production))


def md5_of(answer: Answer) -> str | None:
    """Return the MD5, in hexadecimal, that an object's ETag is; None where the ETag is something else.

    It is one for objects written in a single part and not encrypted with KMS or a customer's key.
    Source: Amazon S3 API Reference, "Object", ETag.
    """
    encrypted = (
        answer.headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
        or "x-amz-server-side-encryption-customer-algorithm" in answer.headers
    )
    etag = answer.etag
    return etag if etag and not encrypted and _MD5.fullmatch(etag) else None


def _digest(side: SideName, key: str, head: Answer) -> Generator[Request, Answer, bytes]:
    """Return the SHA-256 of an object, read in ranges that are pinned to its ETag; memory is bounded by one range."""
    digest = hashlib.sha256()
    size_bytes = head.content_length or 0
    for first in range(0, size_bytes, RANGE_BYTES):
        last = min(first + RANGE_BYTES, size_bytes) - 1
        part = yield from ask(get_object(side, key, first_byte=first, last_byte=last, if_match=head.etag))
        digest.update(part.body)
    return digest.digest()
