"""One object in one PUT: taken whole or piped through, its digest checked at both ends."""

from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

from rowferry.errors import ObjectError
from rowferry.s3.operations import Request, content_md5, put_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_written_etag
from rowferry.s3.retry import TRIES
from rowferry_worker.copying.put_limit import TRIED_BYTES, PutLimit
from rowferry_worker.objects.compare import md5_of
from rowferry_worker.objects.digests import hash_body, mismatch
from rowferry_worker.objects.intents import Intent, Probe, Target, check_again, write_object
from rowferry_worker.objects.link_trial import LinkTrial
from rowferry_worker.objects.memory import Hold
from rowferry_worker.objects.own_copies import DamagedWrite
from rowferry_worker.objects.pipe import ObjectPipe

REFUSED_DIGESTS = frozenset({"BadDigest", "InvalidDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"})
"""Error codes by which a server says that what came is not what was announced."""


class InDoubt(Exception):
    """The server has refused what came with the legacy object's digest, or has not confirmed it."""

    def __init__(self, written_etag: str = "") -> None:
        """`written_etag`: that of what it has written; empty where it has written nothing."""
        super().__init__(written_etag)
        self.written_etag = written_etag


class Taken(NamedTuple):
    """A GET whose headers, at least, have come."""

    read: Request
    response: Response
    hold: Hold
    """Its share of the memory for bodies."""


class OnePut:
    """The write of one object."""

    def __init__(self, target: Target, intent: Intent, limit: PutLimit, *, checks: bool = False) -> None:
        """`limit` is told how it goes; `checks`: hash what is read, also where the production server is trusted.

        The object that a probe writes over is written already: to be on the safe side it is hashed.
        """
        self._target = target
        self._intent = intent
        self._limit = limit
        self._checks = checks or isinstance(intent, Probe)
        self._body = b""
        self._pipe: ObjectPipe | None = None
        self._digest = ""

    async def take_body(self, taken: Taken) -> None:
        """Take the body, or as much of it as a pipe holds. Raises ObjectDamaged where it is not what its ETag says."""
        expected, response = md5_of(taken.response), taken.response
        self._checks = self._checks or expected is None or self._target.support.confirms_digests is not True
        if expected is not None and response.stream is not None:
            self._pipe = ObjectPipe(
                self._target.s3,
                taken.read,
                response,
                checks_read=self._checks,
                before_end=partial(check_again, self._target, self._intent),
                trial=LinkTrial(response.body_bytes, self._limit.trials) if response.body_bytes > TRIED_BYTES else None,
            )
            self._digest = expected
            return
        taken.hold.resize(2 * response.body_bytes)  # the pieces and the whole, or the body and the request with it
        self._body = response.body if response.stream is None else await response.stream.read_all()
        self._digest = await hash_body(self._body) if self._checks or expected is None else expected
        if expected not in {None, self._digest}:
            raise mismatch("read", self._digest, expected)

    async def write(self, headers: list[tuple[str, str]]) -> str:
        """Write the object and return its ETag.

        Raises DamagedWrite when something else was written, InDoubt when that is to be found out by hashing. A PUT that
        is tried is sent once; where it fails, raises ByParts or NotFinished as `PutLimit.note_failed`.
        """
        headers = [*headers, content_md5(self._digest)]
        request = put_object(self._target.key, self._body, headers=headers, source=self._pipe, if_none_match=False)
        tried_bytes = self._pipe.length if self._pipe is not None and self._pipe.length > TRIED_BYTES else 0
        try:
            with self._limit.trials.counting() if tried_bytes else nullcontext():
                tries = 1 if tried_bytes else TRIES
                etag, written = await write_object(self._target, self._intent, request, read_written_etag, tries=tries)
        except ObjectError as error:
            if not self._checks and error.code in REFUSED_DIGESTS:
                raise InDoubt from error
            if tried_bytes:
                self._limit.note_failed(error, tried_bytes)
            raise
        finally:
            if self._pipe is not None:
                self._pipe.close()
        told = md5_of(written)
        if not self._checks and told != self._digest:
            self._target.support.note_digest(confirmed=False)
            raise InDoubt(etag)
        if told not in {None, self._digest}:
            raise DamagedWrite.named("DigestMismatch", mismatch("written", self._digest, told).message, etag)
        self._target.support.note_digest(confirmed=told is not None)
        return etag
