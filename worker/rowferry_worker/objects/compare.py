"""Are two objects the same? By size, by ETag where it means something, else by their bytes."""

import hashlib
import re

from rowferry.plan import SideName
from rowferry.s3.responses import Answer
from rowferry_worker.objects.journey import Steps, head, size_of
from rowferry_worker.objects.reading import read_range

RANGE_BYTES = 4 * 1024 * 1024
"""How much of an object is read at a time when its bytes have to be compared."""

CHECKSUMS = tuple(f"x-amz-checksum-{name}" for name in ("sha256", "crc64nvme", "sha1", "crc32c", "crc32"))
"""The headers that a server may tell an object's checksum in, the strongest first."""

_MD5 = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{32}(-\d+)?")


def are_same(
    legacy_key: str, legacy: Answer, production_key: str, production: Answer, *, deep: bool = False
) -> Steps[bool]:
    """Return whether two objects, whose headers are given, have the same bytes; `deep`: read them in any case.

    Metadata is not compared. By size, by ETag where it means something, by a checksum that both servers know, else by
    reading both. Raises ServerFault when one of them is rewritten meanwhile.
    """
    if size_of(legacy) != size_of(production):
        return False
    if not deep:
        if is_digest(legacy) and legacy.etag == production.etag:
            return True
        if md5_of(legacy) and md5_of(production):
            return False
        same = yield from _compare_checksums(legacy_key, legacy, production_key, production)
        if same is not None:
            return same
    legacy_digest = yield from read_digest("legacy", legacy_key, legacy)
    return legacy_digest == (yield from read_digest("production", production_key, production))


def _compare_checksums(legacy_key: str, legacy: Answer, production_key: str, production: Answer) -> Steps[bool | None]:
    """Return whether the objects have the same checksum; None where the servers know none of one kind.

    Source: Amazon S3 User Guide, "Checking object integrity": only a FULL_OBJECT checksum says something of the bytes
    whatever parts they came in.
    """
    known: list[dict[str, str]] = []
    objects: list[tuple[SideName, str, Answer]] = [
        ("legacy", legacy_key, legacy),
        ("production", production_key, production),
    ]
    for side, key, seen in objects:
        answer = yield from head(side, key, if_match=seen.etag, with_checksum=True)
        whole = answer.headers.get("x-amz-checksum-type") == "FULL_OBJECT"
        known.append({name: answer.headers[name] for name in CHECKSUMS if whole and name in answer.headers})
        if not known[-1]:
            return None
    first, second = known
    return next((first[name] == second[name] for name in CHECKSUMS if name in first and name in second), None)


def md5_of(answer: Answer) -> str | None:
    """Return the MD5, in hexadecimal, that an object's ETag is; None where the ETag is something else.

    It is one for objects written in a single part and not encrypted with KMS or a customer's key.
    Source: Amazon S3 API Reference, "Object", ETag.
    """
    etag = answer.etag
    return etag if etag and not is_encrypted(answer) and _MD5.fullmatch(etag) else None


def is_digest(answer: Answer) -> bool:
    """Return whether an object's ETag is made of its bytes, in one part or several: two that are equal say the same."""
    return answer.etag is not None and not is_encrypted(answer) and _DIGEST.fullmatch(answer.etag) is not None


def is_encrypted(answer: Answer) -> bool:
    """Return whether an object is encrypted in a way that makes its ETag something else than a digest of its bytes."""
    return (
        answer.headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
        or "x-amz-server-side-encryption-customer-algorithm" in answer.headers
    )


def read_digest(side: SideName, key: str, seen: Answer) -> Steps[bytes]:
    """Return the SHA-256 of the object whose headers are given, read range by range; memory is bounded by one of them.

    Raises ServerFault when the object is rewritten meanwhile, ObjectDamaged when other bytes come than were asked for.
    """
    digest = hashlib.sha256()
    size_bytes = size_of(seen)
    for first in range(0, size_bytes, RANGE_BYTES):
        last = min(first + RANGE_BYTES, size_bytes) - 1
        digest.update((yield from read_range(side, key, seen, first, last)))
    return digest.digest()
