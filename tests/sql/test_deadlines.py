"""A connection that misses the deadline of its statements is cut, by one thread for the whole process."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest

from rowferry.db import deadlines, timeouts
from rowferry.db.connection import connect
from rowferry.db.deadlines import DeadlineMonitor, set_deadline
from rowferry.db.timeouts import LOCK_TIMEOUT
from support.postgres.relay import silent_after_connecting
from support.processes.clock import Clock
from support.processes.processes import wait_for


class ScanClock(Clock):
    """What deadlines go by; between two scans passes what passes."""

    sleep = staticmethod(time.sleep)


def move_by_hand(monkeypatch: pytest.MonkeyPatch) -> ScanClock:
    clock = ScanClock()
    monkeypatch.setattr(deadlines, "time", clock)
    monkeypatch.setattr(deadlines, "SCAN_INTERVAL", timedelta(seconds=0.01))
    monkeypatch.setattr(deadlines, "_monitor", DeadlineMonitor())
    return clock


def test_whatever_a_worker_asks_is_answered_or_its_connection_cut(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "ANSWER_DEADLINE", timedelta(seconds=70))
    monkeypatch.setenv(LOCK_TIMEOUT, "30")
    clock = move_by_hand(monkeypatch)
    with silent_after_connecting(database) as (dsn, silent):
        monkeypatch.setenv("DATABASE_URL", dsn)
        with (
            closing(connect("test", bounded=True)) as connection,
            connection.transaction(),
            ThreadPoolExecutor(1) as pool,
        ):
            silent.set()
            asking = pool.submit(connection.execute, "select 1")
            wait_for(lambda: connection in deadlines._monitor._until)
            clock.now += 99
            with pytest.raises(TimeoutError):
                asking.result(0.1)
            clock.now += 1
            with pytest.raises(psycopg.OperationalError):
                asking.result(60)


def test_a_deadline_that_is_set_cuts_the_connection_and_one_that_was_kept_cuts_nothing_later(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = move_by_hand(monkeypatch)
    with silent_after_connecting(database) as (dsn, silent):
        monkeypatch.setenv("DATABASE_URL", dsn)
        with closing(connect("test", autocommit=True, bounded=True)) as connection, ThreadPoolExecutor(1) as pool:
            set_deadline(connection, timedelta(seconds=60))
            connection.execute("select 1")
            clock.now += 61
            connection.execute("select pg_sleep(0.2)")  # in which the monitor looks many times
            silent.set()
            asking = pool.submit(connection.execute, "select 1")
            wait_for(lambda: connection in deadlines._monitor._until)
            clock.now += 61
            with pytest.raises(psycopg.OperationalError):
                asking.result(60)
            assert connection.closed
