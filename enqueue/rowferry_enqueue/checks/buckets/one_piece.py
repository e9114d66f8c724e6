"""Counts the objects that a server, or a proxy before it, refuses for the size of their bodies; sends none."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterator
from datetime import timedelta
from functools import cache

from rowferry.errors import ObjectError, ObjectRejected
from rowferry.formatting import count
from rowferry.http.deadlines import InFlight
from rowferry.http.pipe import Pipe, SourceFailed
from rowferry.plan import Plan
from rowferry.s3.cures import find_cure, refusal_of
from rowferry_enqueue.checks.buckets.bucket_errors import explain, summarise_error
from rowferry_enqueue.checks.buckets.large import list_sizes
from rowferry_enqueue.checks.buckets.probe import Probe
from rowferry_enqueue.checks.finding import Finding, part, problem

ONE_PIECE_BYTES, PART_BYTES = 100 * 1024**2, 8 * 1024**2
"""Larger objects go by parts where one piece is refused, and how large these may be."""
TAKEN_BYTES = 512 * 1024
"""So much is taken everywhere: nginx takes 1 MiB unless told otherwise."""
REFUSED_WITHIN = timedelta(seconds=1)
"""A body that is too large is refused by its Content-Length, before any of it has come."""
TOO_LARGE = frozenset({"too-large", "object-too-large"})


class _Announced(Pipe):
    """A body of which only the length is sent: the request ends where the server waits for more."""

    async def send(self, target: asyncio.Transport, in_flight: InFlight | None, *, is_paused: bool) -> bytes:
        """Wait for a refusal, which ends the pipe. Raises SourceFailed where none comes in time."""
        del target, in_flight, is_paused
        self._last = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(REFUSED_WITHIN.total_seconds()):
                return await self._last
        except TimeoutError:
            raise SourceFailed(ObjectRejected("NotRefused", f"{self.length:,} bytes are taken")) from None

    async def ask(self) -> bytes:
        """Return nothing: there is no body."""
        return b""


def count_refused(probe: Probe, plan: Plan) -> Iterator[Finding]:
    """Yield how many of the first legacy objects have bodies that are too large, if any."""

    @cache
    def refuse(size: int) -> ObjectError | None:
        return None if size <= TAKEN_BYTES else _refuse(probe, plan, size)

    bodies = sorted(_largest_body(size, plan.migration.multipart_threshold_bytes) for size in list_sizes(plan))
    if not bodies or refuse(bodies[-1]) is None:
        return
    first = bisect_left(bodies, True, key=lambda size: refuse(size) is not None)
    if error := refuse(bodies[first]):
        large, sampled = len(bodies) - first, count(len(bodies), "sampled object", "sampled objects")
        are = "is" if large == 1 else "are"
        what = f"{large:,} of {sampled} {are} larger than this server takes in one piece"
        refused = f"{bodies[first]:,} bytes: {summarise_error(error)}"
        yield (part if first else problem)(f"{what} ({refused})", explain(plan.production, error))


def _largest_body(size: int, threshold_bytes: int | None) -> int:
    """Return the size of the largest body that an object of this size is sent in."""
    one_piece = min(ONE_PIECE_BYTES, threshold_bytes or ONE_PIECE_BYTES)
    return size if size <= one_piece else min(PART_BYTES, one_piece)


def _refuse(probe: Probe, plan: Plan, size: int) -> ObjectError | None:
    """Return the error by which a body of this size is refused as too large; None where it is not."""
    try:
        probe.announce(_Announced(size))
    except ObjectError as error:
        cure = find_cure(refusal_of(error), plan.production)
        return error if cure is not None and cure.case in TOO_LARGE else None
    return None
