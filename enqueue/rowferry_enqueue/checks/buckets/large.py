"""Counts the objects that a server, or a proxy before it, cannot take for their size; sends none of them."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from functools import cache

from rowferry.errors import ObjectError, ObjectRejected, RowferryError
from rowferry.formatting import count
from rowferry.http.deadlines import InFlight
from rowferry.http.pipe import Pipe, SourceFailed
from rowferry.keys import object_prefixes
from rowferry.plan import Plan
from rowferry.s3.client import open_object_client
from rowferry.s3.cures import find_cure, refusal_of
from rowferry.s3.listings.keys import read_page
from rowferry.s3.operations import COPY_LIMIT_BYTES, PUT_LIMIT_BYTES, list_keys
from rowferry.s3.retry import TRIES
from rowferry_enqueue.checks.buckets.bucket_errors import explain, summarise_error
from rowferry_enqueue.checks.buckets.probe import Probe
from rowferry_enqueue.checks.finding import Finding, note, part, problem

MOST_PREFIXES = 10
"""Of the plan, whose first 1,000 objects are looked at."""
ONE_PIECE_BYTES, PART_BYTES = 100 * 1024**2, 8 * 1024**2
"""Larger objects go by parts where one piece is refused, and how large these may be."""
TAKEN_BYTES = 512 * 1024
"""So much is taken everywhere: nginx takes 1 MiB unless told otherwise."""
REFUSED_WITHIN = timedelta(seconds=1)
"""A body that is too large is refused by its Content-Length, before any of it has come."""
TOO_LARGE = frozenset({"too-large", "object-too-large"})


def check_sizes(probe: Probe, plan: Plan, of_parts: ObjectError | None) -> Iterator[Finding]:
    """Yield how many of the first legacy objects are too large; `of_parts`: why no object of parts can be written.

    A server may refuse to copy parts of so small an object as the probe, as Garage does, and copy others.
    """
    if (cure := of_parts and find_cure(refusal_of(of_parts), plan.production)) and cure.case == "small-source":
        of_parts = None
    if of_parts is None and plan.server_side:
        return
    sizes = _list_sizes(plan)
    if of_parts is not None:
        yield _judge_parts(plan, of_parts, sizes)
    if not plan.server_side:
        yield from _count_refused(probe, plan, sizes)


def _judge_parts(plan: Plan, error: ObjectError, sizes: Sequence[int]) -> Finding:
    most = plan.migration.multipart_threshold_bytes or (COPY_LIMIT_BYTES if plan.server_side else PUT_LIMIT_BYTES)
    limit = f"{most / 1024**2:,.0f} MiB"
    what = f"an object of parts cannot be written ({summarise_error(error)})"
    stream = 'set `transfer = "stream"` in the plan' if plan.server_side else "use a server that takes parts"
    if plan.migration.multipart_threshold_bytes is not None:
        stream = "leave multipart_threshold_bytes out, or use a server that takes parts"
    remedy = explain(plan.production, error) or stream
    large = sum(size > most for size in sizes)
    if not sizes:
        return part(f"{what}: objects of more than {limit} will fail", remedy)
    if not large:
        return note(f"{what}, as those of more than {limit} are; none of {len(sizes):,} sampled objects is", remedy)
    are = "object is" if len(sizes) == 1 else "objects are"
    counted = f"{large:,} of {len(sizes):,} sampled {are} larger than this server takes in one piece"
    return (problem if large == len(sizes) else part)(f"{what}: {counted} ({limit})", remedy)


def _list_sizes(plan: Plan) -> list[int]:
    """Return the sizes of the first legacy objects below each prefix; none where they may not be listed."""
    sizes: dict[str, int] = {}
    with suppress(RowferryError), closing(open_object_client(plan.legacy, max_in_flight=1)) as client:
        for prefix in list(dict.fromkeys(object_prefixes(plan.parts, "legacy")))[:MOST_PREFIXES]:
            page = read_page(client.ask(list_keys("legacy", prefix), tries=TRIES))
            sizes |= {each.key: int(each.size or 0) for each in page.objects}
    return list(sizes.values())


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


def _count_refused(probe: Probe, plan: Plan, sizes: Sequence[int]) -> Iterator[Finding]:
    """Yield how many of these objects have bodies that are too large, if any."""

    @cache
    def refuse(size: int) -> ObjectError | None:
        return None if size <= TAKEN_BYTES else _refuse(probe, plan, size)

    bodies = sorted(_largest_body(size, plan.migration.multipart_threshold_bytes) for size in sizes)
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
