"""The rate of each queue over the last half hour, in slices of ten seconds, and how it is drawn."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rowferry.db.connection import Connection
from rowferry.db.statements import statement

SLICE = timedelta(seconds=10)
HISTORY = timedelta(minutes=30)
BLOCKS = " ▁▂▃▄▅▆▇█"
"""A cell that is filled by so many eighths."""


class PaceHistory:
    """What was finished in each slice. Reads the whole history once, then what may have changed since."""

    def __init__(self, migration: str) -> None:
        """Read nothing yet."""
        self.migration = migration
        self._entries: dict[tuple[str, int], int] = {}
        self._read_to: int | None = None

    def read(self, connection: Connection, moment: datetime) -> None:
        """Read on up to a moment. The last slice but one is read again: a COMMIT comes after its `finished_at`."""
        step = int(SLICE.total_seconds())
        now = begin_slice(moment)
        oldest = now - int(HISTORY.total_seconds())
        since = oldest if self._read_to is None else max(oldest, self._read_to - step)
        parameters = {
            "migration": self.migration,
            "seconds": step,
            "since": datetime.fromtimestamp(since, UTC),
        }
        rows = connection.execute(statement("watch_pace"), parameters).fetchall()
        kept = {key: count for key, count in self._entries.items() if oldest <= key[1] < since}
        self._entries = kept | {(row["queue"], row["began"]): row["entries"] for row in rows}
        self._read_to = now

    def list_rates(self, queue: str, since: datetime | None) -> tuple[float, ...]:
        """Return the entries a second in each whole slice since then, the latest last; at most `HISTORY`.

        None: the queue has not begun.
        """
        if self._read_to is None or since is None:
            return ()
        step = int(SLICE.total_seconds())
        first = max(begin_slice(since), self._read_to - int(HISTORY.total_seconds()))
        return tuple(self._entries.get((queue, began), 0) / step for began in range(first, self._read_to, step))


def begin_slice(moment: datetime) -> int:
    """Return the first second, since 1970, of the slice that a moment is in."""
    step = int(SLICE.total_seconds())
    return int(moment.timestamp()) // step * step


def draw_chart(rates: Sequence[float], columns: int, rows: int) -> list[str]:
    """Return a chart of the last `columns` rates, its top line first; the highest fills all `rows`.

    A rate of 0 is drawn, too, as the lowest block of the bottom line; any other rate is higher.
    """
    shown = rates[-columns:] if columns > 0 else ()
    most = max(shown, default=0)
    levels = [1 + round(rate / most * (8 * rows - 1)) if most else 1 for rate in shown]
    levels = [max(level, 2) if rate else level for level, rate in zip(levels, shown, strict=True)]
    return ["".join(BLOCKS[min(max(level - 8 * row, 0), 8)] for level in levels) for row in reversed(range(rows))]
