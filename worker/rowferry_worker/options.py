"""The settings of a worker process: one record, from the command line to the slots."""

from dataclasses import dataclass, field
from datetime import timedelta

from rowferry_worker.machine import bound_objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A setting has its default here alone; `rowferry worker` has an option of the same name for it.

    Not here is what every session needs, also one that is no worker's: see rowferry/db/timeouts.py. The host's name is
    for rowferry_worker/service.py.
    """

    parallel: int = field(default_factory=bound_objects)
    """Objects in flight at once at the most; as many as pay."""
    min_parallel: int = 1
    """Objects that may be in flight however slow or throttled the servers are."""
    max_batches: int = 16
    """Batches claimed at once, at most; each has a connection to PostgreSQL."""
    queues: tuple[str, ...] = ()
    """Names of the queues to serve; empty: all that are known here."""
    migrations: tuple[str, ...] = ()
    """Names of the migrations to serve; empty: all."""
    until_empty: bool = False
    end_when_unusable: bool = False
    """Whether a migration that cannot be used on this host ends the worker, instead of being skipped for a while."""
    grace: timedelta = timedelta(seconds=30)
    """How long claimed batches may take to finish after the first signal."""
    time_budget: timedelta = timedelta(seconds=20)
    """After this long a batch starts no more entries; the remaining ones are put back as a batch of their own."""
    request_timeout: timedelta = timedelta(seconds=60)
    """How long one S3 request may take, from its sending to its response."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """None: the metrics are not served."""
