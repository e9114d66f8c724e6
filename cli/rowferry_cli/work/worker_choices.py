"""What `rowferry worker` was told, and whether it goes together."""

import os
from dataclasses import dataclass

import click

from rowferry.db.timeouts import IDLE_TIMEOUT, LOCK_TIMEOUT, LOST_AFTER, PGBOUNCER
from rowferry.logs import LogFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of the command; times in seconds."""

    processes: int
    parallel: int
    min_parallel: int
    slots: int
    queues: tuple[str, ...]
    migrations: tuple[str, ...]
    until_empty: bool
    end_when_unusable: bool
    grace: float
    time_budget: float
    request_timeout: float
    lock_timeout: float
    lost_after: float
    idle_timeout: float
    pgbouncer: bool
    metrics_port: int | None
    metrics_host: str
    log_format: LogFormat
    trace: bool
    verbose: bool

    def check(self) -> None:
        """Raise click.UsageError where two of them do not go together."""
        if self.min_parallel > self.parallel:
            raise click.UsageError(f"--min-parallel {self.min_parallel} is more than --parallel {self.parallel}")
        if self.idle_timeout <= self.time_budget:
            raise click.UsageError(
                f"--idle-timeout {self.idle_timeout:g} is not more than --time-budget {self.time_budget:g}"
            )

    def bound_sessions(self) -> None:
        """Give every connection of this process and of its children the bounds that were chosen."""
        os.environ |= {LOCK_TIMEOUT: str(self.lock_timeout), PGBOUNCER: str(int(self.pgbouncer))}
        os.environ |= {LOST_AFTER: str(self.lost_after), IDLE_TIMEOUT: str(self.idle_timeout)}
