"""The workers that a command starts on this host end with it, and none is left when their start is broken off."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from processes import is_running
from rowferry import local_workers
from rowferry.local_workers import LocalWorkers


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
        pytest.raises(OSError, match="any more"),
        LocalWorkers(2, [], tmp_path / "log", lambda _line: None),
    ):
        pytest.fail("they must not be taken for started")
    assert len(started) == 1
    assert not is_running(started[0])
