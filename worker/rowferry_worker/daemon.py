"""The daemon: starts the slots of one worker process, and stops them on SIGTERM or SIGINT."""

import gc
import logging
import os
import signal
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from threading import Event
from types import FrameType

from rowferry import __version__
from rowferry.db.connection import Connection, connect
from rowferry.db.schema import check_version
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.logs import set_process_fields
from rowferry.queues import list_queues
from rowferry_worker.ledger import Ledger
from rowferry_worker.machine import log_machine
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.monitoring import metrics
from rowferry_worker.monitoring.heartbeat import ClusterState, Heartbeat
from rowferry_worker.monitoring.server import serve_own_metrics
from rowferry_worker.options import Options
from rowferry_worker.queues import find_queue, list_usable
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.service import is_orphan, name_host, notify, process_number
from rowferry_worker.slots import Slots
from rowferry_worker.state import WorkerState

_log = logging.getLogger(__name__)

LOOK_UP_EVERY = timedelta(seconds=0.2)
RELEASE_TIMEOUT = timedelta(seconds=5)
"""How long slots may take to roll back once they must give up; then they are cut off, and the process ends."""


GARBAGE_THRESHOLD = 50_000
"""Allocations, less deallocations, between two collections of the youngest generation; Python's default is 700."""


def run_worker(options: Options) -> None:
    """Run a worker process until it is told to stop, or until its queues are empty.

    Raises UsageError when its settings cannot work, DatabaseUnavailable when there is no database to begin with.
    """
    metrics.keep_in_files()
    for name in options.queues:
        find_queue(name)
    worker_id = f"{name_host()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
    with connect(f"worker {worker_id}") as connection:
        check_version(connection)
        if options.migrations:
            _check_migrations(connection, options)
    state = _make_state(worker_id, options)
    with ExitStack() as until:
        if options.metrics_port is not None:
            address = options.metrics_host, options.metrics_port
            until.enter_context(serve_own_metrics(*address, state.is_progressing))
        _work(state)


def import_queues(names: Sequence[str]) -> None:
    """Import what work of these queues takes, or of all that are known here; what is wrong with one, a worker says."""
    for name in names or list_queues():
        with suppress(UsageError):
            find_queue(name)


def _check_migrations(connection: Connection, options: Options) -> None:
    """Log which of the named migrations do not exist. Raises UsageError where the worker would not wait for one."""
    known = [row["name"] for row in connection.execute(statement("list_migrations"))]
    unknown = [name for name in options.migrations if name not in known]
    error = f"there is no migration {', '.join(unknown)} in this database (there is {', '.join(known) or 'none'})"
    if unknown and options.until_empty:
        raise UsageError(f"{error[0].upper()}{error[1:]}.")
    if unknown:
        _log.warning("migration not found, waiting for it", extra={"error": error})


def _make_state(worker_id: str, options: Options) -> WorkerState:
    cluster = ClusterState()
    return WorkerState(
        worker_id,
        list(options.queues) or list_usable(),
        Ledger(worker_id),
        MigrationContextCache(options.parallel, cluster, options.request_timeout),
        CopyScheduler(options.parallel, options.min_parallel, cluster=cluster),
        options,
        cluster=cluster,
    )


def _work(state: WorkerState) -> None:
    """Run heartbeat and slots until told to stop. Raises the reason if the worker stops without being told to."""
    worker_id, queues = state.worker_id, state.queues
    metrics.objects_in_flight_limit.set(state.scheduler.limit.value)
    heartbeat = Heartbeat(
        state.ledger,
        worker_id,
        queues,
        state.report,
        state.is_progressing,
        state.cluster,
        Event(),
        state.count_in_hand,
    )
    _listen_for_signals(state)  # before anyone can see the worker, and stop it
    heartbeat.start()
    set_process_fields(worker=worker_id)
    if not process_number():
        log_machine(1)
    _log.info("worker started", extra={"worker": worker_id, "version": __version__, "queues": queues})
    try:
        _run_slots(state)
    finally:
        state.migration_contexts.close()
        heartbeat.deregister()
        state.ledger.close()
        _log.info("worker stopped", extra={"worker": worker_id})
    if state.reason is not None:
        raise state.reason


def _run_slots(state: WorkerState) -> None:
    """Run the slots to their end: after a first signal they have `grace`, after a second one no more time."""
    _calm_garbage_collector()
    slots = Slots(state)
    slots.start()
    while slots.are_running() and not state.stopping.is_set():
        time.sleep(LOOK_UP_EVERY.total_seconds())
        slots.start_if_wanted()
        if is_orphan() and not state.stopping.is_set():
            _log.warning("supervisor died, shutting down after the current batches")
            state.stopping.set()
    notify("STOPPING=1", "STATUS=shutting down after the current batches")
    _join(slots, state.options.grace, unless=state.give_up)
    state.give_up.set()
    _join(slots, RELEASE_TIMEOUT, unless=Event())
    slots.abandon()


def _calm_garbage_collector() -> None:
    """Look for reference cycles less often, and never among loaded modules: requests make no cycles.

    With Python's default threshold a worker spends a tenth of its time on walking through live requests.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    gc.enable()


def _listen_for_signals(state: WorkerState) -> None:
    """Set an event at each signal. The main thread, which runs the handlers, must never wait for these events.

    A handler may interrupt `Event.wait` while it holds the lock that `Event.set` needs: a deadlock.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        again = state.stopping.is_set()
        (state.give_up if again else state.stopping).set()
        message = "releasing claimed batches" if again else "shutting down after the current batches"
        _log.info(message, extra={"signal": number})

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _join(slots: Slots, within: timedelta, *, unless: Event) -> None:
    """Wait until the slots have ended, `within` is over, or `unless` is set."""
    deadline = time.monotonic() + within.total_seconds()
    while slots.are_running() and time.monotonic() < deadline and not unless.is_set():
        time.sleep(LOOK_UP_EVERY.total_seconds() / 4)
