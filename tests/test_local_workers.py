"""The workers that a command starts on this host end with it, and none is left when their start is broken off."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from migration import Migration
from processes import is_running
from rowferry.logs import LogFile
from rowferry_cli.run import local_workers
from rowferry_cli.run.local_workers import LocalWorkers


def test_the_first_worker_is_ended_when_the_second_cannot_be_started(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    started: list[int] = []

    class OnlyOnce(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            if started:
                raise OSError("no process can be started any more")
            super().__init__(*arguments, **options)
            started.append(self.pid)

    monkeypatch.setattr(local_workers.subprocess, "Popen", OnlyOnce)
    with (
        closing(LogFile(tmp_path / "log")) as log,
        pytest.raises(OSError, match="any more"),
        LocalWorkers(2, [], log, lambda _line: None),
    ):
        pytest.fail("they must not be taken for started")
    assert len(started) == 1
    assert not is_running(started[0])


def test_a_full_log_disk_is_one_sentence_and_disturbs_no_work(migration: Migration) -> None:
    migration.fill(5)
    migration.write_plan()
    done = migration.run("migrate", "--processes", "1", "--batch-size", "2", "--log-file", "/dev/full", "--yes")
    assert done.stderr == "The log file /dev/full is not complete: No space left on device. The work goes on.\n"
    assert done.returncode == 0
    migration.audit()
