"""Workers that were started elsewhere, in the place of this host's."""

import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from rowferry.db.connection import Connection
from rowferry.db.statements import statement

WAIT = timedelta(minutes=1)
"""How long there may be none before the run is given up: they may be replaced just now."""
LOOK_EVERY = timedelta(seconds=5)


class WorkersElsewhere:
    """Looks whether any worker serves each of some queues; has the members of LocalWorkers that a run needs."""

    def __init__(self, connection: Connection, queues: Sequence[str]) -> None:
        """Look by this connection, which must be in autocommit."""
        self._connection = connection
        self._queues = list(queues)
        self._unserved = list(queues)
        self._seen_at = self._looked_at = time.monotonic()

    dead_pids: frozenset[int] = frozenset()
    """Nothing is known of their processes but their heartbeats."""

    @property
    def last_words(self) -> str:
        """Why the run cannot go on."""
        one = "the queue" if len(self._unserved) == 1 else "the queues"
        return f"no worker serves {one} {', '.join(self._unserved)}: start `rowferry worker` on any host"

    def __enter__(self) -> Self:
        """Begin to wait for them."""
        self._seen_at = self._looked_at = time.monotonic()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Leave them as they are."""

    @property
    def ended_by_mistake(self) -> bool:
        """Whether one of the queues has had none for WAIT."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY.total_seconds():
            self._looked_at = now
            rows = self._connection.execute(statement("list_unserved_queues"), {"queues": self._queues}).fetchall()
            self._unserved = [row["name"] for row in rows]
            self._seen_at = self._seen_at if self._unserved else now
        return now - self._seen_at > WAIT.total_seconds()

    def replace_dead(self) -> int:
        """Return 0: their supervisors replace them."""
        return 0
