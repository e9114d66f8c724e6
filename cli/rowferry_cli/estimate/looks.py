"""Looks at both sides of an entry's object, with the requests of a worker that write nothing."""

from collections.abc import Sequence

from msgspec.structs import replace

from rowferry.batch import Outcome
from rowferry.errors import ObjectError, ObjectNotFound, ObjectRejected
from rowferry.s3.operations import get_object
from rowferry.s3.responses import Response
from rowferry.s3.results import read_content_range, read_tag_count
from rowferry_cli.estimate.request_counts import CopyMode, Existing, SampledObject
from rowferry_worker.copying.copy import CopyResult
from rowferry_worker.objects.compare import is_digest, md5_of
from rowferry_worker.objects.requests import ObjectRequests, size_of

STREAM_ABOVE_BYTES = 64 * 1024
"""Longer bodies are read piece by piece, so that looks need little memory."""
MAX_ASKED_FOR_TAGS = 20
"""Objects that are asked for their tags where no response has announced any."""


class ObjectSample:
    """The sampled keys, and what was seen of each so far. Used on the event loop only, but for reading."""

    def __init__(self, keys: Sequence[tuple[str, str]], mode: CopyMode) -> None:
        """`keys`: legacy and production keys."""
        self._keys, self._mode = keys, mode
        self.seen: dict[int, SampledObject] = {}
        """By the position of the key."""
        self.errors: dict[int, ObjectError] = {}
        """Of keys that could not be looked at."""
        self.production_errors: list[ObjectError] = []
        """The first refusals to look at production objects, which are then taken for not there."""
        self.looks = 0
        """Looks that have ended, those at keys that were seen before included."""
        self.bytes = 0
        """Of bodies that were read and thrown away."""
        self.announces_tags = True
        self._asked_for_tags = 0

    async def look(self, s3: ObjectRequests, number: int) -> CopyResult:
        """Look at the object of one key on both sides: a streaming worker's read with its body, else its headers.

        Raises the ObjectError of a legacy object that can neither be read nor is missing.
        """
        position = number % len(self._keys)
        legacy_key, production_key = self._keys[position]
        try:
            seen = await self._read_legacy(s3, legacy_key)
        except ObjectNotFound:
            found = SampledObject(is_missing=True)
        except ObjectError as error:
            self.errors.setdefault(position, error)
            raise
        else:
            existing = await self._find_production(s3, production_key)
            size_bytes, response = seen
            found = SampledObject(
                size_bytes,
                tags=await self._count_tags(s3, legacy_key, response, is_first=position not in self.seen),
                existing=compare_headers(size_bytes, response, existing),
                has_existing_tags=existing is not None and bool(read_tag_count(existing)),
                has_multipart_etag="-" in (response.etag or ""),
                has_md5=md5_of(response) is not None,
            )
        self.seen[position] = found
        self.errors.pop(position, None)
        self.looks += 1
        return CopyResult(Outcome.KEPT)

    async def _read_legacy(self, s3: ObjectRequests, key: str) -> tuple[int, Response]:
        """Return the size of a legacy object and its headers."""
        if self._mode.server_side:
            response = await s3.head("legacy", key)
            return size_of(response), response
        request = get_object("legacy", key, first_byte=0, last_byte=self._mode.part_bytes - 1)
        try:
            response = await s3.send(replace(request, stream_above=STREAM_ABOVE_BYTES))
        except ObjectRejected:  # an empty object has no first byte, and not every server has heard of ranges
            response = await s3.head("legacy", key)
            return size_of(response), response
        told = read_content_range(response) if response.status == 206 else None
        size_bytes = told.total if told is not None and told.total is not None else response.body_bytes
        self.bytes += await _throw_away(response, self._mode.part_bytes)
        return size_bytes, Response(response.status, response.headers)

    async def _find_production(self, s3: ObjectRequests, key: str) -> Response | None:
        """Return the headers of the production object; None where there is none, or it may not be looked at."""
        try:
            return await s3.find("production", key)
        except ObjectError as error:
            if len(self.production_errors) < MAX_ASKED_FOR_TAGS:
                self.production_errors.append(error)
            return None

    async def _count_tags(self, s3: ObjectRequests, key: str, response: Response, *, is_first: bool) -> int:
        announced = read_tag_count(response)
        if announced is not None or not is_first or self._asked_for_tags >= MAX_ASKED_FOR_TAGS:
            return announced or 0
        self._asked_for_tags += 1
        try:
            tags = len(await s3.fetch_tags("legacy", key))
        except ObjectError:  # as a worker: what may not be read, or is not known, is not copied
            return 0
        if tags:
            self.announces_tags = False
        return tags


async def _throw_away(response: Response, most_bytes: int) -> int:
    """Read a body, up to so many bytes, without keeping it; return how many came."""
    if response.stream is None:
        return len(response.body)
    came = 0
    try:
        while came < most_bytes and (pieces := await response.stream.read()):
            came += sum(map(len, pieces))
    finally:
        response.stream.close()
    return came


def compare_headers(size_bytes: int, legacy: Response, production: Response | None) -> Existing:
    """Return what the headers of both objects say, as a worker's comparison does before it reads bytes."""
    if production is None:
        return "none"
    if size_of(production) != size_bytes:
        return "different"
    if is_digest(legacy) and legacy.etag == production.etag:
        return "identical"
    return "different" if md5_of(legacy) and md5_of(production) else "unclear"
