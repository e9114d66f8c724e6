"""The daemon: starts the slots of one worker process, and stops them as the signals say."""

import gc
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread
from types import FrameType

from rowferry import __version__
from rowferry.db.connection import Connection, connect
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.logs import set_process_fields
from rowferry_worker.batch.ledger import Ledger
from rowferry_worker.migration import REQUEST_DEADLINE, Routes
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.cluster import Fleet
from rowferry_worker.monitoring.heartbeat import Heart
from rowferry_worker.monitoring.server import serve_own_metrics
from rowferry_worker.objects.scheduler import Flight
from rowferry_worker.queues import list_queues
from rowferry_worker.service import is_orphan, notify
from rowferry_worker.slot import Slot
from rowferry_worker.state import Shared

_log = logging.getLogger(__name__)

LOOK_UP_EVERY = timedelta(seconds=0.2)
GIVE_BACK_WITHIN = timedelta(seconds=5)
"""How long slots have to roll back once they are told to give up; then they are cut off, and the process ends."""


GARBAGE_THRESHOLD = 50_000
"""Objects made, beyond those freed, before Python looks for cycles among the young ones; its own choice is 700."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a worker process is to run."""

    parallel: int = 64
    """Objects in flight at once, over all slots."""
    min_parallel: int = 1
    """How many of them stay allowed, however the servers answer."""
    slots: int = 2
    """Batches in hand at once: while one drains, the next is filling."""
    queues: tuple[str, ...] = ("migrate",)
    migrations: tuple[str, ...] = ()
    """The names of those to serve; empty: all."""
    end_when_unusable: bool = False
    """Whether to end where a migration cannot be worked on here, instead of setting it aside."""
    until_empty: bool = False
    grace: timedelta = timedelta(seconds=30)
    """How long batches in hand may take to finish after the first signal."""
    time_budget: timedelta = timedelta(seconds=20)
    """How long a batch may take before what is not begun of it goes back in the queue."""
    request_timeout: timedelta = REQUEST_DEADLINE
    """How long one S3 request may take, from its sending to its answer."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """None: the metrics are not served."""


def run_worker(options: Options) -> None:
    """Run a worker process until it is told to stop, or until its queues are empty.

    Raises UsageError when its settings cannot work, DatabaseUnavailable when there is no database to begin with.
    """
    if unknown := set(options.queues) - set(list_queues()):
        raise UsageError(f"There is no queue {min(unknown)!r}; this worker knows {', '.join(list_queues())}.")
    worker_id = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
    with connect(f"worker {worker_id}") as connection:
        check_version(connection)
        if options.migrations:
            _look_up_migrations(connection, options)
    with ExitStack() as until:
        if options.metrics_port is not None:
            until.enter_context(serve_own_metrics(options.metrics_host, options.metrics_port))
        _work(worker_id, options)


def _look_up_migrations(connection: Connection, options: Options) -> None:
    """Say which of the named migrations do not exist. Raises UsageError where the worker would not wait for one."""
    known = [row["name"] for row in connection.execute(statement("list_migrations"))]
    unknown = [name for name in options.migrations if name not in known]
    words = f"there is no migration {', '.join(unknown)} in this database (there is {', '.join(known) or 'none'})"
    if unknown and options.until_empty:
        raise UsageError(f"{words[0].upper()}{words[1:]}.")
    if unknown:
        _log.warning("waiting for a migration of that name", extra={"error": words})


def _work(worker_id: str, options: Options) -> None:
    """Beat and work until told to stop. Raises what made the worker stop, if it was not told to."""
    queues = list(options.queues)
    fleet = Fleet()
    shared = Shared(
        worker_id,
        queues,
        Ledger(worker_id),
        Routes(options.parallel, fleet, options.request_timeout),
        Flight(options.parallel, options.min_parallel),
        options.until_empty,
        options.time_budget,
        list(options.migrations) or None,
        options.end_when_unusable,
        slots=options.slots,
    )
    metrics.objects_in_flight_limit.set(shared.flight.limit.value)
    heart = Heart(shared.ledger, worker_id, options.slots, options.parallel, queues, shared.is_steady, fleet, Event())
    heart.start()
    set_process_fields(worker=worker_id)
    _log.info("worker started", extra={"worker": worker_id, "version": __version__, "queues": queues})
    try:
        _run_slots(shared, options)
    finally:
        shared.routes.close()
        heart.deregister_worker()
        shared.ledger.close()
        _log.info("worker stopped", extra={"worker": worker_id})
    if shared.reason is not None:
        raise shared.reason


def _run_slots(shared: Shared, options: Options) -> None:
    """Run the slots to their end; after a first signal they have `grace`, after a second one no more time."""
    _listen_for_signals(shared)
    _calm_garbage_collector()
    slots = [Slot(shared) for _ in range(options.slots)]
    threads = [Thread(target=slot.run, name=f"slot {n}", daemon=True) for n, slot in enumerate(slots)]
    for thread in threads:
        thread.start()
    while _any_alive(threads) and not shared.stopping.is_set():
        time.sleep(LOOK_UP_EVERY.total_seconds())
        if is_orphan() and not shared.stopping.is_set():
            _log.warning("the supervisor has died; finishing what is in hand")
            shared.stopping.set()
    notify("STOPPING=1", "STATUS=finishing what is in hand")
    _join(threads, options.grace, unless=shared.give_up)
    shared.give_up.set()
    _join(threads, GIVE_BACK_WITHIN, unless=Event())
    for slot in slots:
        slot.abandon()


def _calm_garbage_collector() -> None:
    """Look for cycles less often, and never among what the process has loaded: what is made per request makes none.

    With Python's thresholds a worker spends a tenth of its time on walking through live requests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)


def _listen_for_signals(shared: Shared) -> None:
    """Set events when signals come: in the main thread, which must never be waiting for one of them.

    A handler may interrupt `Event.wait` while it holds the lock that `Event.set` needs, and would wait for ever.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        again = shared.stopping.is_set()
        (shared.give_up if again else shared.stopping).set()
        _log.info("giving back what is in hand" if again else "finishing what is in hand", extra={"signal": number})

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _join(threads: Sequence[Thread], within: timedelta, *, unless: Event) -> None:
    """Wait until the threads have ended, `within` is over, or `unless` is set."""
    deadline = time.monotonic() + within.total_seconds()
    while _any_alive(threads) and time.monotonic() < deadline and not unless.is_set():
        time.sleep(LOOK_UP_EVERY.total_seconds() / 4)


def _any_alive(threads: Sequence[Thread]) -> bool:
    return any(thread.is_alive() for thread in threads)
