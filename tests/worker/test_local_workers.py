"""The workers that a command starts on this host end with it, and none is left when their start is broken off."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rowferry_cli.log_file import LogFile
from rowferry_cli.migrate.workers import LocalWorkers
from rowferry_worker.supervisor import supervised_process
from support.entries.migration import Migration
from support.processes.processes import is_running, wait_for


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogFile]:
    with closing(LogFile(tmp_path / "log")) as log:
        yield log


def test_the_first_worker_is_ended_when_the_second_cannot_be_started(
    database: str, log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    class OnlyOnce(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            if started:
                raise OSError("no process can be started any more")
            super().__init__(*arguments, **options)
            started.append(self.pid)

    monkeypatch.setattr(supervised_process.subprocess, "Popen", OnlyOnce)
    with pytest.raises(OSError, match="any more"), LocalWorkers(2, [], log, lambda _line: None):
        pytest.fail("they must not be taken for started")
    assert len(started) == 1
    assert not is_running(started[0])


def test_the_last_line_of_a_worker_whose_settings_cannot_work_is_kept(migration: Migration, log: LogFile) -> None:
    with LocalWorkers(2, ["--queue", "nonsense"], log, lambda _line: None) as workers:
        wait_for(lambda: workers.replace_dead() == 0 and workers.ended_by_mistake)
        assert workers.last_words.startswith("There is no queue 'nonsense'")


KILLED_COMMAND = """
import sys, time
from pathlib import Path
from rowferry_cli.log_file import LogFile
from rowferry_cli.migrate.workers import LocalWorkers
with LocalWorkers(1, [], LogFile(Path(sys.argv[1])), lambda _line: None) as workers:
    print(*workers.pids().values(), flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_the_command_and_its_workers(times: int, migration: Migration, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_COMMAND, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as interrupted:
        assert interrupted.stdout is not None
        worker = int(interrupted.stdout.readline())
        wait_for(lambda: "worker started" in (tmp_path / "log").read_text())
        for _ in range(times):
            interrupted.send_signal(signal.SIGINT)
            time.sleep(0.05)  # two alike may arrive as one
        assert interrupted.wait(100) != 0
    assert not is_running(worker)


@pytest.mark.must("a full disk")
def test_a_full_log_disk_is_one_sentence_and_disturbs_no_work(migration: Migration) -> None:
    migration.fill(5).write_plan()
    done = migration.run("migrate", "--processes", "1", "--batch-size", "2", "--log-file", "/dev/full", "--yes")
    assert done.stderr == "The log file /dev/full is incomplete: No space left on device. The work goes on.\n"
    assert done.returncode == 0
    migration.audit()
