"""A batch that has killed a worker runs alone, so that its next crash takes no other batch along."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from rowferry_worker.state import BatchLock
from support.entries.migration import Migration
from support.processes.poison import work_in_spite_of_poison
from support.processes.processes import wait_for


class Stop(Event):
    """Counts how often the lock asks for it: once each time that it lets its holder wait."""

    looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return super().is_set()


class Holder:
    """A thread that holds the lock until told to release it."""

    def __init__(self, lock: BatchLock, pool: ThreadPoolExecutor, *, alone: bool = False) -> None:
        self.release, self.stop, self.acquired = Event(), Stop(), Event()
        self.ended: Future[bool] = pool.submit(self._hold, partial(lock.hold, alone=alone))

    def _hold(self, hold: Callable[..., AbstractContextManager[bool]]) -> bool:
        with hold(unless=self.stop) as acquired:
            if acquired:
                self.acquired.set()
                assert self.release.wait(100)
            return acquired

    def end(self) -> None:
        self.release.set()
        assert self.ended.result(100)

    def is_kept_waiting(self) -> bool:
        """Return once the lock has been looked at by now: whether its holder still waits."""
        looks = self.stop.looks
        wait_for(lambda: self.stop.looks > looks or self.acquired.is_set())
        return not self.acquired.is_set()


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    monkeypatch.setattr("rowferry_worker.state.LOOK_UP_SECONDS", 0.01)
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_who_is_to_be_alone_waits_until_all_have_released_and_goes_before_new_ones(pool: ThreadPoolExecutor) -> None:
    lock = BatchLock()
    first = Holder(lock, pool)
    assert first.acquired.wait(100)
    writer = Holder(lock, pool, alone=True)
    wait_for(lambda: lock._waiting_alone == 1)
    assert writer.is_kept_waiting()
    late = Holder(lock, pool)
    assert late.is_kept_waiting(), "else the writer would wait for ever"
    first.end()
    assert writer.acquired.wait(100)
    assert late.is_kept_waiting()
    writer.end()
    assert late.acquired.wait(100)
    late.end()
    first = Holder(lock, pool, alone=True)
    assert first.acquired.wait(100)
    second = Holder(lock, pool, alone=True)
    assert second.is_kept_waiting()
    first.end()
    assert second.acquired.wait(100)
    second.end()


def test_the_only_holder_may_stay_alone(pool: ThreadPoolExecutor) -> None:
    lock, never = BatchLock(), Event()
    with lock.hold(alone=False, unless=never):
        assert lock.keep_alone()
        other = Holder(lock, pool)
        assert other.is_kept_waiting()
    assert other.acquired.wait(100)
    with lock.hold(alone=False, unless=never):
        assert not lock.keep_alone()
    other.end()


def test_waiting_ends_once_the_worker_stops(pool: ThreadPoolExecutor) -> None:
    lock = BatchLock()
    first = Holder(lock, pool)
    assert first.acquired.wait(100)
    writer = Holder(lock, pool, alone=True)
    writer.stop.set()
    assert not writer.ended.result(100)
    second = Holder(lock, pool)
    assert second.acquired.wait(100), "a writer that has given up blocks no reader"
    for holder in (first, second):
        holder.end()


def test_an_innocent_batch_in_the_same_process_is_not_taken_for_poison(
    versitygw_migration: Migration, tmp_path: Path
) -> None:
    """Each entry is a batch of its own, so none can be halved: two slots hold the poison and a neighbour at once."""
    migration = versitygw_migration.given(8, 1)
    deaths = work_in_spite_of_poison(migration, tmp_path, slots=4).count(-9)
    (error,) = [batch for batch in migration.batches() if batch["status"] == "ERROR"]
    assert error["payload"]["first"] == "7"
    assert deaths == error["max_attempts"]
    migration.audit(legacy_left=[7])
