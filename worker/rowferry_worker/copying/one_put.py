"""One object in one PUT: taken whole or passed on as it arrives, its digest checked at both ends."""

from functools import partial
from typing import NamedTuple

from rowferry.errors import NotFinished, ObjectError
from rowferry.s3.operations import Request, content_md5, put_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_written_etag
from rowferry.s3.retry import TRIES
from rowferry_worker.copying.put_limit import GoByParts, PutLimit, is_judged, is_tried
from rowferry_worker.copying.transfer import ObjectWrite, Written
from rowferry_worker.multipart.part_size import STREAM_PART_BYTES
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.digests import hash_body, mismatch
from rowferry_worker.objects.intents import Probe, check_again, check_early, write_object
from rowferry_worker.objects.link_trial import LinkTrial
from rowferry_worker.objects.memory import Hold
from rowferry_worker.objects.own_copies import DamagedWrite
from rowferry_worker.objects.pipe import ObjectPipe
from rowferry_worker.objects.requests import demand, read_etag

REFUSED_DIGESTS = frozenset({"BadDigest", "InvalidDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"})
"""Error codes by which a server says that what came is not what was announced."""


class Unconfirmed(NamedTuple):
    """The server has refused what came with the legacy object's digest, or has not confirmed it: hashing will tell."""

    written_etag: str = ""
    """Of what the server has written; empty where it has written nothing."""


Put = Written | GoByParts | Unconfirmed


class Taken(NamedTuple):
    """A GET whose headers, at least, have come."""

    read: Request
    response: Response
    hold: Hold
    """Its share of the memory for bodies."""


class Body(NamedTuple):
    """What is written."""

    digest: str
    """Its MD5, in hexadecimal."""
    is_hashed: bool
    """Whether that is held against the bytes here; otherwise it is what the legacy server says."""
    whole: bytes = b""
    pipe: ObjectPipe | None = None
    """Where it is not here as a whole."""


async def put_whole(
    write: ObjectWrite, taken: Taken, limit: PutLimit, *, keep_class: bool, is_hashed: bool = False
) -> Put:
    """Write the object whose headers, at least, have come. `is_hashed`: hash what is read in any case.

    Raises ObjectDamaged where it is not what its ETag says, DamagedWrite when something else was written, NotFinished
    when a PUT that was tried has failed and the next attempt is to send parts.
    """
    s3, seen, properties = write.s3, taken.response, write.properties
    if seen.body_bytes > STREAM_PART_BYTES:  # a server may read it all before it refuses it
        await check_early(write.target, write.intent)
    demand(read_etag, seen, taken.read)
    await s3.refuse_web_server(taken.read, seen)
    is_hashed = is_hashed or _must_hash(write, seen, limit)
    is_first_hashed = is_hashed and seen.stream is not None and not limit.is_hashing
    limit.is_hashing |= is_first_hashed
    try:
        body = await _take_body(write, taken, is_hashed=is_hashed)
        described = await properties.describe(s3, write.source_key, seen, "PutObject", keep_class=keep_class)
        put = await _send(write, body, described.headers, limit)
    finally:
        limit.is_hashing &= not is_first_hashed
    if not isinstance(put, str):
        return put
    await properties.settle(s3, write.target.key, described, "PutObject")
    return Written(seen.body_bytes, "PutObject", put, seen.etag or "")


def _must_hash(write: ObjectWrite, seen: Response, limit: PutLimit) -> bool:
    """Return whether an object is hashed here: until the server has confirmed a digest that was computed here.

    Of objects that are passed on, one at a time suffices for that: what the server tells of the others is held against
    the legacy ETag. The object that a probe writes over is written already: to be on the safe side it is hashed.
    """
    confirms = write.target.support.confirms_digests
    if md5_of(seen) is None or isinstance(write.intent, Probe):
        return True
    if confirms is None and seen.stream is not None:
        return not limit.is_hashing
    return confirms is not True


async def _take_body(write: ObjectWrite, taken: Taken, *, is_hashed: bool) -> Body:
    """Take the body, or what passes it on. Raises ObjectDamaged where it is not what its ETag says."""
    expected, seen = md5_of(taken.response), taken.response
    if expected is not None and seen.stream is not None:
        trial = LinkTrial(seen.body_bytes) if is_judged(seen.body_bytes) else None
        before_end = partial(check_again, write.target, write.intent)
        pipe = ObjectPipe(
            write.s3, taken.read, seen, seen.stream, checks_read=is_hashed, before_end=before_end, trial=trial
        )
        return Body(expected, is_hashed, pipe=pipe)
    taken.hold.resize(2 * seen.body_bytes)  # the pieces and the whole, or the body and the request with it
    whole = seen.body if seen.stream is None else await seen.stream.read_all()
    digest = await hash_body(whole) if is_hashed or expected is None else expected
    if expected not in {None, digest}:
        raise mismatch("read", digest, expected)
    return Body(digest, is_hashed, whole)


async def _send(
    write: ObjectWrite, body: Body, headers: list[tuple[str, str]], limit: PutLimit
) -> str | GoByParts | Unconfirmed:
    """Write the object and return its ETag. A PUT that is tried is sent once. Raises as `put_whole`."""
    target, size_bytes = write.target, len(body.whole) if body.pipe is None else body.pipe.length
    headers = [*headers, content_md5(body.digest)]
    request = put_object(target.key, body.whole, headers=headers, source=body.pipe, if_none_match=False)
    tries = 1 if is_tried(size_bytes) else TRIES
    try:
        etag, written = await write_object(target, write.intent, request, read_written_etag, tries=tries)
    except ObjectError as error:
        if not body.is_hashed and error.code in REFUSED_DIGESTS:
            return Unconfirmed()
        match limit.judge(error, size_bytes):
            case GoByParts() as by_parts:
                return by_parts
            case NotFinished() as unfinished:
                raise unfinished from error
            case None:
                raise
    finally:
        if body.pipe is not None:
            body.pipe.close()
    return _judge_written(write, body, etag, md5_of(written))


def _judge_written(write: ObjectWrite, body: Body, etag: str, told: str | None) -> str | Unconfirmed:
    """Return the ETag of what was written, which has the digest that the server `told`. Raises DamagedWrite."""
    support = write.target.support
    if told != body.digest and not body.is_hashed:
        support.note_digest(confirmed=False)
        return Unconfirmed(etag)
    if told not in {None, body.digest}:
        raise DamagedWrite.named("DigestMismatch", mismatch("written", body.digest, told).message, etag)
    if body.is_hashed:
        support.note_digest(confirmed=told is not None)
    return etag
