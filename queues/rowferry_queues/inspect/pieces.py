"""Takes the pieces of a content: few of them on the event loop, all others beside it."""

from collections.abc import Iterator

from rowferry_queues.inspect.inspection import Inspection
from rowferry_worker.compute import compute

INLINE_BYTES = 256 * 1024
"""How much content is computed with on the event loop: 0.3 ms to 1 ms of inflating, SHA-256 and counting lines."""
PIECE_COST_BYTES = 2 * 1024
"""What a piece without content counts for: the beginning of another member."""


def read_whole(inspection: Inspection, body: bytes) -> Iterator[bytes]:
    """Yield the content of a whole body."""
    yield from inspection.feed(body)
    yield from inspection.end()


async def exhaust(pieces: Iterator[bytes], inline_bytes: int) -> None:
    """Take all pieces: the first of them, up to `inline_bytes`, here, and the others beside the event loop."""
    while inline_bytes > 0:
        piece = next(pieces, None)
        if piece is None:
            return
        inline_bytes -= count_cost(piece)
    await compute(_take_all, pieces)


def count_cost(piece: bytes) -> int:
    """Return what a piece costs of INLINE_BYTES."""
    return len(piece) or PIECE_COST_BYTES


def _take_all(pieces: Iterator[bytes]) -> None:
    for _ in pieces:
        pass
