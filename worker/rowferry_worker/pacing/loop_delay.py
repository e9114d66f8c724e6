"""How late the event loop is: what a busy process adds to the latency that it sees."""

import asyncio
from dataclasses import dataclass, field

EVERY_SECONDS, TIMERS = 0.01, 100
"""How often a timer asks, and how many do after the last call of `watch`."""


@dataclass(slots=True)
class LoopDelay:
    """Asks by timers while `watch` is called; used on the event loop only."""

    seconds: float = 0.0
    """How long a response waits to be read, as a moving average: twice what a timer is late.

    A timer waits for the end of the loop's iteration, a response for that and for the responses before it.
    """
    _left: int = field(init=False, default=0)

    def watch(self) -> None:
        """Go on asking for a while; nothing where no event loop runs."""
        was, self._left = self._left, TIMERS
        if not was:
            try:
                self._ask(asyncio.get_running_loop())
            except RuntimeError:
                self._left = 0

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + EVERY_SECONDS
        loop.call_at(due, self._note, loop, due)

    def _note(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.seconds += 0.2 * (2 * (loop.time() - due) - self.seconds)
        self._left -= 1
        if self._left:
            self._ask(loop)
