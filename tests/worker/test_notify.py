"""What systemd hears of a worker: a real datagram socket stands in for its own."""

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from signal import SIGTERM
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest

from rowferry.errors import DatabaseUnavailable
from rowferry_worker.ledger import Ledger
from rowferry_worker.monitoring import heartbeat
from rowferry_worker.monitoring.heartbeat import ClusterState
from rowferry_worker.service import SlotWatchdog, notify
from support.entries.migration import Migration
from support.processes.clock import Clock
from support.processes.processes import wait_for
from support.queue.queue_states import report_nothing

ReadStates = Callable[[], list[str]]


@pytest.fixture
def socket_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with TemporaryDirectory(prefix="rf") as folder:  # a socket's path has room for some 100 bytes
        path = str(Path(folder) / "notify")
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield path


@pytest.fixture
def states(socket_path: str) -> Iterator[ReadStates]:
    """Listen, and return all states heard so far, in order."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(socket_path)
        channel.setblocking(False)
        states: list[str] = []

        def listen() -> list[str]:
            while True:
                try:
                    states.extend(channel.recv(4096).decode().split("\n"))
                except BlockingIOError:
                    return states

        yield listen


def test_a_name_in_the_abstract_namespace_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"rowferry-test-notify-{os.getpid()}"  # every network namespace has but one of a name
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        try:
            channel.bind(f"\0{name}")
        except OSError:
            pytest.skip("only Linux has abstract sockets")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        assert notify("READY=1")
        assert channel.recv(64) == b"READY=1"


def test_a_socket_without_a_listener_is_no_error(monkeypatch: pytest.MonkeyPatch, socket_path: str) -> None:
    assert not notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert not notify("READY=1")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("rowferry_worker.service.time", clock)
    return clock


def test_a_pulse_is_progressing_while_every_slot_keeps_turning_that_has_not_ended(clock: Clock) -> None:
    watchdog, moment = SlotWatchdog(), timedelta(seconds=5)
    assert watchdog.is_progressing(moment)
    stuck = Thread(target=watchdog.begin_turn)
    stuck.start()
    stuck.join()
    clock.now += 4
    assert watchdog.is_progressing(moment)
    clock.now += 2
    watchdog.begin_turn()
    assert not watchdog.is_progressing(moment), "the other slot has not turned"
    watchdog, moment = SlotWatchdog(), timedelta(seconds=5)
    watchdog.begin_turn()
    watchdog.remove()
    clock.now += 6
    assert watchdog.is_progressing(moment)


class StandInLedger(Ledger):
    """Counts the heartbeats; refuses them while the database is `away`."""

    def __init__(self) -> None:
        super().__init__("test")
        self.heartbeats = 0
        self.away = False

    def call(self, function: str, *arguments: Any, **_: Any) -> list[Any]:
        self.heartbeats += 1
        if self.away:
            raise DatabaseUnavailable("PostgreSQL cannot be reached")
        return [{"live_workers": 1, "replica_lag": None, "connections": 97, "fleet_rates": {}}]


@pytest.fixture
def ledger() -> StandInLedger:
    return StandInLedger()


@pytest.fixture
def progressing() -> Event:
    """Set while the slots make progress."""
    event = Event()
    event.set()
    return event


@pytest.fixture
def _running_heartbeat(ledger: StandInLedger, progressing: Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_INTERVAL", timedelta(seconds=0.01))
    beating = heartbeat.Heartbeat(ledger, "w", ["migrate"], report_nothing, progressing.is_set, ClusterState(), Event())
    thread = beating.start()
    yield
    beating.deregister()
    thread.join()


@pytest.mark.usefixtures("_running_heartbeat")
def test_the_watchdog_hears_nothing_while_a_slot_hangs(
    ledger: StandInLedger, progressing: Event, states: ReadStates
) -> None:
    wait_for(lambda: "WATCHDOG=1" in states())
    progressing.clear()
    wait_for_beats(ledger, 2)  # the one that may be under way, and one more
    before = states().count("WATCHDOG=1")
    wait_for_beats(ledger, 5)
    assert states().count("WATCHDOG=1") == before


@pytest.mark.usefixtures("_running_heartbeat")
def test_a_database_that_is_away_is_waited_for_not_a_reason_to_restart(
    ledger: StandInLedger, states: ReadStates
) -> None:
    ledger.away = True
    wait_for(lambda: "STATUS=waiting for the database: PostgreSQL cannot be reached" in states())
    assert states()[-2:] == ["WATCHDOG=1", "STATUS=waiting for the database: PostgreSQL cannot be reached"]


def wait_for_beats(ledger: StandInLedger, count: int) -> None:
    until = ledger.heartbeats + count
    wait_for(lambda: ledger.heartbeats >= until)


def test_systemd_hears_that_a_worker_is_ready_alive_and_stopping(migration: Migration, states: ReadStates) -> None:
    migration.given(5)
    with migration.workers(1) as [worker]:
        wait_for(lambda: "READY=1" in states())
        assert migration.execute("select 1 from rowferry.live_workers"), "ready means known in the database"
        wait_for(lambda: "WATCHDOG=1" in states())
        assert "STOPPING=1" not in states()
        worker.signal(SIGTERM)
        assert worker.wait() == 0
    assert states().index("READY=1") < states().index("WATCHDOG=1") < states().index("STOPPING=1")
