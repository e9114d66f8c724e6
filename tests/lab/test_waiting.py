"""A test that waits in vain ends within seconds on a quiet machine, is patient on a busy one, and says what it saw."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.processes import processes, time_limit
from support.processes.clock import LoadClock, count_running
from support.processes.processes import run_to_end, wait_for, wait_for_end

NOW = timedelta(0)
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@dataclass
class Machine:
    """A machine of two cores on which so many threads want to run, and whose time passes while a test waits."""

    running: int = 1
    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def clock(self) -> LoadClock:
        return LoadClock(lambda: self.running, lambda: self.now, cores=2)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(processes, "LoadClock", machine.clock)
    monkeypatch.setattr(processes, "time", SimpleNamespace(sleep=machine.sleep))
    return machine


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_second_counts_as_much_of_it_as_a_thread_would_have_had_and_a_pause_as_one() -> None:
    for running, passed, counted in ((1, 0.5, 0.5), (2, 0.5, 0.5), (4, 0.5, 0.25), (40, 0.5, 0.025), (1, 600, 1)):
        machine = Machine(running)
        clock = machine.clock()
        machine.now += passed
        assert clock.look() == pytest.approx(counted)
    assert count_running() >= 1, "this thread runs"


def test_a_deadline_is_ten_times_as_far_where_ten_times_as_much_wants_to_run(machine: Machine) -> None:
    for running, seconds in ((2, 30), (20, 300)):
        machine.running, machine.waits = running, []
        with pytest.raises(AssertionError, match=r"still 0 after 30 s of a core, \d+ s on the wall"):
            wait_for(lambda: 0)
        assert sum(machine.waits) == pytest.approx(seconds, rel=0.01)


def test_what_holds_is_seen_although_the_deadline_has_passed(machine: Machine) -> None:
    wait_for(lambda: True, deadline=NOW)
    assert machine.waits == []


def test_waiting_ends_with_the_last_of_the_processes_that_it_depends_on(machine: Machine) -> None:
    @dataclass
    class Ends:
        status: int
        turns: int

        def poll(self) -> int | None:
            self.turns -= 1
            return self.status if self.turns < 0 else None

    with pytest.raises(AssertionError, match=r"all processes ended, with \[1, -9\], and the condition is still \[\]"):
        wait_for(list, by=[Ends(1, turns=0), Ends(-9, turns=3)])
    assert len(machine.waits) == 3


def test_a_process_that_does_not_end_fails_the_test(sleeper: subprocess.Popen[bytes]) -> None:
    with pytest.raises(AssertionError):
        wait_for_end(sleeper, deadline=NOW)
    sleeper.kill()
    wait_for(lambda: sleeper.returncode is not None, by=[sleeper])  # what a process did last is seen
    assert wait_for_end(sleeper) == -9


def test_a_command_is_given_what_is_typed_and_returns_what_it_wrote() -> None:
    done = run_to_end([sys.executable, "-c", "import sys; print(input()); sys.exit('no')"], typed="yes\n")
    assert (done.returncode, done.stdout, done.stderr) == (1, "yes\n", "no\n")


def test_a_command_that_does_not_end_is_killed_and_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its time is up once it has written: until then the clock stands still."""
    clock = LoadClock(now=lambda: 600.0 * (tmp_path / "written").exists())
    monkeypatch.setattr(processes, "LoadClock", lambda: clock)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)did not end within .*it wrote:\nhello\n"):
        run_to_end(["sh", "-c", "echo hello; touch written; exec sleep 600"], cwd=tmp_path, deadline=NOW)


def test_a_test_that_takes_too_long_is_interrupted() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    try:
        limit = time_limit.TimeLimit(0)
        wait_for(lambda: heard)
        limit.cancel()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_time_limit_is_held_no_longer_than_its_test(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "LoadClock", machine.clock)
    limit = time_limit.TimeLimit(100)
    limit.cancel()
    machine.now += 1000
    assert not limit._thread.is_alive()
