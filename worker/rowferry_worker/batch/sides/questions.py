"""What is asked of the servers where a side may be at fault: operations that failed, of keys where they should succeed.

No question writes an object, and none writes to the legacy side.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rowferry.plan import Plan, SideName
from rowferry.s3.operations import (
    REQUESTER_PAYS,
    WRITES,
    Pairs,
    Request,
    copy_object,
    create_multipart_upload,
    digest_header,
    get_object,
    get_object_acl,
    get_object_tagging,
    head_object,
    list_keys,
    put_object,
    put_object_tagging,
    upload_part,
    upload_part_copy,
)
from rowferry.s3.properties import write_headers
from rowferry_worker.batch.sides.judgement import Suspicion
from rowferry_worker.objects.requests import NO_OBJECT

_READS: Mapping[str, Callable[[SideName, str], Request]] = {
    "HeadObject": head_object,
    "GetObject": get_object,
    "GetObjectTagging": get_object_tagging,
    "GetObjectAcl": get_object_acl,
}
LISTING = "ListObjectsV2"
_VERSIONS = {"PutObjectTagging": None, "PutObjectVersionTagging": "null"}
"""The version that a request names which needs the right: "null" is one in every bucket, as S3 writes it."""
_NO_WRITE = "rowferry-asks-whether-it-may-write"
"""The key of a PutObject that is refused, since its conditions do not hold."""
_REFUSED = ("If-Match", '"rowferry"'), digest_header(b"another body")
_FEW_BYTES = b"rowferry"


@dataclass(frozen=True, slots=True)
class Question:
    """A request, and what its response means."""

    request: Request
    part: Callable[..., Request] | None = None
    """Returns a request for the upload that was begun, by its key and `upload_id`; it is aborted in any case."""
    has_object: bool = True
    """Whether there may be a success: an S3 server has no object for the key of any other question."""
    counts_missing: bool = False
    """Whether the server works as well where it says that there is no object."""


def ask_of_nothing(plan: Plan, suspicion: Suspicion) -> Question:
    """Return the question about a key without an object."""
    side, name = suspicion.operation
    side = side or "production"
    match name:
        case "ListObjectsV2" if suspicion.is_denied:
            return Question(list_keys(side, NO_OBJECT, max_keys=1))
        case "HeadObject" | "GetObject" | "GetObjectTagging" | "GetObjectAcl" | "ListObjectsV2":
            read = head_object if name in {"GetObject", LISTING} else _READS[name]
            return Question(read(side, NO_OBJECT), has_object=False)
        case "PutObjectTagging" | "PutObjectVersionTagging":
            # Sent only where tags were read before, so no server takes it for an object.
            return Question(put_object_tagging(NO_OBJECT, (), version=_VERSIONS[name]))
        case "CopyObject" | "UploadPartCopy":
            return _copy_nothing(plan, NO_OBJECT)
        case "PutObject" if not suspicion.is_denied:
            return Question(put_object(_NO_WRITE, _FEW_BYTES, headers=_REFUSED, if_none_match=False))
        case _:
            return _begin_upload(plan, NO_OBJECT)


def ask_of_object(plan: Plan, suspicion: Suspicion, legacy: str | None, production: str | None) -> Question | None:
    """Return the question about an object that the operation should succeed for; None where its key is not known."""
    side, name = suspicion.operation
    key = legacy if side == "legacy" else production
    if name in WRITES:
        return _ask_to_write(plan, suspicion, legacy, production)
    if key is None or side is None or name not in {*_READS, LISTING}:
        return None
    if name == LISTING:
        return Question(list_keys(side, key, max_keys=1))
    is_usual = side == "production" and not suspicion.is_denied  # before an object is written, it is not there
    return Question(_READS[name](side, key), counts_missing=is_usual)


def _ask_to_write(plan: Plan, suspicion: Suspicion, legacy: str | None, production: str | None) -> Question | None:
    if suspicion.is_denied:
        write = _copy_nothing if suspicion.reads_as_well else _begin_upload
        return None if production is None else write(plan, production)
    if not suspicion.reads_as_well:
        return _begin_upload(plan, production or NO_OBJECT, _send_part)
    return None if legacy is None else _begin_upload(plan, production or NO_OBJECT, _copy_part_of(plan, legacy))


def _copy_nothing(plan: Plan, target: str) -> Question:
    headers = [*_pay(plan), *write_headers(plan.production)]
    bucket = plan.legacy.bucket
    request = copy_object(target, source_bucket=bucket, source_key=NO_OBJECT, if_none_match=True, headers=headers)
    return Question(request, has_object=False)


def _begin_upload(plan: Plan, key: str, part: Callable[..., Request] | None = None) -> Question:
    return Question(create_multipart_upload(key, headers=write_headers(plan.production)), part)


_send_part = partial(upload_part, body=_FEW_BYTES, part_number=1, headers=[digest_header(_FEW_BYTES)])


def _copy_part_of(plan: Plan, legacy: str) -> Callable[..., Request]:
    source = {"source_bucket": plan.legacy.bucket, "source_key": legacy, "source_etag": None}
    return partial(upload_part_copy, **source, first_byte=0, last_byte=0, part_number=1, headers=_pay(plan))


def _pay(plan: Plan) -> Pairs:
    return (REQUESTER_PAYS,) if plan.legacy.requester_pays else ()
