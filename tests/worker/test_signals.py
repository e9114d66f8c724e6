"""A signal finds the main thread where it can be heard."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from rowferry_worker import daemon
from rowferry_worker.ledger import Ledger
from rowferry_worker.migration import MigrationContextCache
from rowferry_worker.options import Options
from rowferry_worker.scheduling.scheduler import CopyScheduler
from rowferry_worker.state import WorkerState
from support.entries.entry_table import EntryTable
from support.processes.processes import wait_for


class Watched(threading.Event):
    """Notes who waits for it."""

    waiting: set[threading.Thread]

    def __init__(self) -> None:
        super().__init__()
        self.waiting = set()

    def wait(self, timeout: float | None = None) -> bool:
        self.waiting.add(threading.current_thread())
        return super().wait(timeout)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears signals")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_main_thread_never_waits_for_an_event_that_its_own_handlers_set(table: EntryTable) -> None:
    """Event.wait holds a lock that Event.set needs: a signal at that moment would stop the worker for ever."""
    table.add_legacy([1]).enqueue()
    table.execute("update rowferry.batch_queue set run_after = now() + interval '1 hour'")
    stopping, give_up = Watched(), Watched()
    ledger, contexts = Ledger("test"), MigrationContextCache(1)
    state = WorkerState(
        "test",
        ["migrate"],
        ledger,
        contexts,
        CopyScheduler(1),
        Options(max_batches=1, until_empty=True),
        stopping=stopping,
        give_up=give_up,
    )
    sender = threading.Thread(target=signal_once_waited_for, args=(stopping,))
    sender.start()
    try:
        daemon._listen_for_signals(state)
        with state.batch_lock.hold(alone=True, unless=give_up):  # so that the slot claims nothing
            daemon._run_slots(state)
    finally:
        sender.join()
        ledger.close()
        contexts.close()
    assert stopping.is_set()
    assert stopping.waiting
    assert threading.main_thread() not in stopping.waiting | give_up.waiting


def signal_once_waited_for(event: Watched) -> None:
    """Send SIGTERM to this process once its slot waits."""
    wait_for(lambda: event.waiting)
    os.kill(os.getpid(), signal.SIGTERM)
