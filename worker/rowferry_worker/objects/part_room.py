"""Room for further parts of large objects: each takes the place of an object in flight."""

import asyncio
from collections import deque
from collections.abc import Callable


class PartRoom:
    """Hands places in flight to the parts that wait for one, in the order in which they asked; event loop only.

    The first part of each object under way uses the object's own place. So several objects come to equal shares, and
    while other objects wait to start, further parts get half of the places at most.
    """

    def __init__(self, offer: Callable[[], object], give_back: Callable[[], object]) -> None:
        """`offer` is called when a part waits, and calls `grant`; `give_back` when a place is free again."""
        self._offer = offer
        self._give_back = give_back
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.taken = 0
        """Places that further parts have now."""

    async def take(self) -> None:
        """Wait for a place, which `release` gives back."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(granted)
        self._offer()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a place back."""
        self.taken -= 1
        self._give_back()

    def grant(self, take_place: Callable[[], bool], most: int) -> None:
        """Give places to those who wait, while `take_place` returns True, until parts have `most`."""
        while self._waiting:
            if self._waiting[0].done():
                self._waiting.popleft()
                continue
            if self.taken >= most or not take_place():
                return
            self.taken += 1
            self._waiting.popleft().set_result(None)
