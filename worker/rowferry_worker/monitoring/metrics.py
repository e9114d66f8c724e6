"""All metrics of a worker; no other module names one.

What counts a batch, its entries or its objects has the labels `migration` and `queue`: `name_work` bounds how many.
Requests, limits and connections belong to all queues of a process.

With `--processes`, each process keeps its values in files named after its number (`keep_in_files`), so that its
replacement continues the counters.
"""

import os

from prometheus_client import Counter, Gauge, Histogram, values
from prometheus_client.metrics import MetricWrapperBase

from rowferry import __version__
from rowferry_worker.monitoring.bulk_histogram import BulkHistogram
from rowferry_worker.service import process_number

FOLDER = "ROWFERRY_METRICS_FOLDER"
"""The variable that names the folder of these files."""

SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds, for PostgreSQL."""
MIDDLE = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds, for S3 requests."""
LONG = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
"""Seconds, for batches."""

MOST_WORK = 50
"""Migrations, each with one of its queues, that a process names in its metrics."""
OTHERS = "others"
_named: set[tuple[str, str]] = set()


def name_work(migration: str, queue: str) -> tuple[str, str]:
    """Return the labels of a migration and one of its queues: the names of the first ones, then "others"."""
    if (migration, queue) not in _named:
        if len(_named) >= MOST_WORK:
            return OTHERS, OTHERS
        _named.add((migration, queue))
    return migration, queue


build_info = Gauge("rowferry_build_info", "Always 1; the version is the label.", ["version"], multiprocess_mode="max")
LAST_HEARTBEAT = "rowferry_last_heartbeat_timestamp_seconds"
last_heartbeat = Gauge(
    LAST_HEARTBEAT,
    "Last successful heartbeat of this worker; of several processes, the oldest.",
    multiprocess_mode="livemin",
)

entries = Counter("rowferry_entries", "Entries that got an outcome.", ["migration", "queue", "outcome"])
object_bytes = Counter(
    "rowferry_object_bytes",
    "Bytes written to the production bucket, where known: a server-side copy does not tell.",
    ["migration", "queue"],
)
object_seconds = BulkHistogram(
    "rowferry_object_seconds",
    "From an object's first request to its last response, retries included.",
    ["migration", "queue"],
    buckets=MIDDLE,
)

requests = Counter("rowferry_requests", "S3 requests by result.", ["side", "operation", "result"])
request_seconds = BulkHistogram(
    "rowferry_request_seconds", "S3 requests, each try by itself.", ["side"], buckets=MIDDLE
)
throttled = Counter("rowferry_throttled_requests", "S3 requests that the server throttled.", ["side"])
request_retries = Counter("rowferry_request_retries", "S3 requests that were sent again.", ["side"])
objects_in_flight = Gauge("rowferry_objects_in_flight", "Objects being copied now.", multiprocess_mode="livesum")
objects_in_flight_limit = Gauge(
    "rowferry_objects_in_flight_limit", "How many may be copied at once now.", multiprocess_mode="livesum"
)
request_rate_limit = Gauge(
    "rowferry_request_rate_limit",
    "Requests a second that are sent where a server refuses more; 0: it lets all through again.",
    ["side", "operation"],
    multiprocess_mode="livesum",
)

attempts = Counter("rowferry_attempts", "Attempts at batches by their verdict.", ["migration", "queue", "verdict"])
batch_seconds = Histogram("rowferry_batch_seconds", "From claim to COMMIT.", ["migration", "queue"], buckets=LONG)
claim_seconds = Histogram("rowferry_claim_seconds", "Claiming a batch, found or not.", buckets=SHORT)
row_update_seconds = Histogram(
    "rowferry_row_update_seconds", "The update of the rows of a batch.", ["migration", "queue"], buckets=SHORT
)
step_seconds = Counter(
    "rowferry_step_seconds",
    "Time of batches by step: claim, read, perform (S3 included), update (of rows), commit, held (waiting for a limit "
    "of the plan, for a batch that runs alone, or for PostgreSQL). Summed over the slots of a process.",
    ["migration", "queue", "step"],
)
limit_wait_seconds = Counter("rowferry_limit_wait_seconds", "Time that slots waited for limits of a plan.", ["limit"])


def _begin() -> None:
    """Count from zero what every process counts: a counter that exists from the start shows its first increment too."""
    build_info.labels(__version__).set(1)
    for side in ("legacy", "production"):
        throttled.labels(side)
        request_retries.labels(side)
    for limit in ("max_rows_per_second", "max_replica_lag"):
        limit_wait_seconds.labels(limit)


def keep_in_files() -> None:
    """Keep all values in the files of this process from now on, if its supervisor wants them there."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # which the library would have heeded too early
    values.ValueClass = values.MultiProcessValue(process_number)  # pyright: ignore[reportUnknownMemberType]
    for metric in [one for one in globals().values() if isinstance(one, MetricWrapperBase)]:  # nothing public does it
        if metric._labelnames:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]
            metric._metrics = {}  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        else:
            metric._metric_init()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    _begin()


_begin()
