"""Workers that were started elsewhere, in the place of this host's."""

import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from rowferry.db.connection import Connection, fetch_one
from rowferry.db.statements import statement

WAIT = timedelta(minutes=1)
"""How long there may be none before the run is given up: they may be replaced just now."""
LOOK_EVERY = timedelta(seconds=5)


class WorkersElsewhere:
    """Looks whether any worker serves a queue; has the members of LocalWorkers that a run needs."""

    def __init__(self, connection: Connection, queue: str) -> None:
        """Look by this connection, which must be in autocommit."""
        self._connection = connection
        self._queue = queue
        self._seen_at = self._looked_at = time.monotonic()
        self.last_words = f"no worker serves the queue {queue}: start `rowferry worker` on any host"

    def __enter__(self) -> Self:
        """Begin to wait for them."""
        self._seen_at = self._looked_at = time.monotonic()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Leave them as they are."""

    @property
    def ended_by_mistake(self) -> bool:
        """Whether none has been there for WAIT."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY.total_seconds():
            self._looked_at = now
            row = fetch_one(self._connection, statement("count_workers_of_queue"), {"queue": self._queue})
            self._seen_at = now if row["workers"] else self._seen_at
        return now - self._seen_at > WAIT.total_seconds()

    def replace_dead(self) -> int:
        """Return 0: their supervisors replace them."""
        return 0
