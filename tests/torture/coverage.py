"""How much of the run a thread of the auditor has covered: an auditor that saw nothing proves nothing."""

import time
from collections.abc import Iterator
from datetime import timedelta

BLINK = timedelta(seconds=5)
"""What lies between two looks, on a busy machine as well; an observer that sees nothing for longer was blind."""
MOST_BLIND = 0.5
"""Of its life, a thread may have been blind for so much: PostgreSQL is away on purpose now and then, never mostly."""


class Coverage:
    """Told by its own thread of each look; read by others when that thread has ended."""

    def __init__(self, name: str) -> None:
        """`name` is what the thread does: "follows"."""
        self.name = name
        self.audits = 0
        """Objects that were read and held against their row."""
        self._blind_seconds = 0.0
        self._began = self._looked_at = time.monotonic()

    def look(self) -> None:
        """Note that rows or an object were read just now."""
        now = time.monotonic()
        if now - self._looked_at > BLINK.total_seconds():
            self._blind_seconds += now - self._looked_at
        self._looked_at = now

    def audit(self) -> None:
        """Note that an object was read, to be held against its row."""
        self.audits += 1
        self.look()

    def faults(self, *, living: bool, rows: int) -> Iterator[str]:
        """Yield why this thread proves nothing, at its end; `living`: until now, `rows` were there to be audited."""
        if not living:
            yield f"the auditor was blind: the thread that {self.name} had ended before its time"
        if rows and not self.audits:
            yield f"the auditor was blind: the thread that {self.name} made no audit"
        unseen = time.monotonic() - self._looked_at
        blind = self._blind_seconds + (unseen if unseen > BLINK.total_seconds() else 0)
        if blind > MOST_BLIND * (life := time.monotonic() - self._began):
            yield f"the auditor was blind: the thread that {self.name} saw nothing for {blind:.0f} s of {life:.0f}"
