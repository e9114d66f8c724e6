"""What a worker hears at each heartbeat of the others, and of the database's replicas."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True)
class Fleet:
    """How many live worker processes there are, this one included, and how far the slowest replica is behind."""

    size: int = 1
    replica_lag: timedelta | None = None
    """None: there is no streaming replica, or it is not behind."""

    def share_of(self, per_second: float | None) -> float | None:
        """Return this worker's even part of a bound for the whole fleet; None where there is no bound."""
        return None if per_second is None else per_second / max(1, self.size)

    def is_behind(self, max_lag_seconds: float | None) -> bool:
        """Return whether a replica is further behind than it may be."""
        if max_lag_seconds is None or self.replica_lag is None:
            return False
        return self.replica_lag.total_seconds() > max_lag_seconds
