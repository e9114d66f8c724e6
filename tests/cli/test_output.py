"""Commands write to terminals and files of any encoding, and say so in a sentence where the disk is full."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.entries.migration import Migration
from support.processes.cli import refused, run_in_this_process
from support.queue.long_migration import fill_queue

OLD = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
"""A locale under which standard output is ASCII."""


def run(
    dsn: str, *arguments: str, environment: Mapping[str, str] | None = None, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own, with a standard output of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rowferry_cli", *arguments],
        env={**os.environ, "DATABASE_URL": dsn, **(environment or {})},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="latin-1",
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "ascii:strict"])
def test_a_view_is_shown_in_any_encoding(
    database: str, encoding: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    fill_queue(database, 60)
    environment = {**os.environ, "DATABASE_URL": database}
    for command in ("watch --once", "errors", "report", "report --json", "errors --entries"):
        with subtests.test(command):
            arguments = [*command.split(), "--migration", "avatars"]
            done = run_in_this_process(arguments, environment, tmp_path, encoding=encoding)
            assert done.returncode in {0, 1}, done.stderr
            assert done.stdout
            assert "Traceback" not in done.stderr


def test_status_and_check_are_shown_in_ascii(migration: Migration) -> None:
    migration.given(1).write_plan()
    for command in ("status", "check"):
        done = run_in_this_process([command], os.environ, migration.folder, encoding="ascii")
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_an_error_is_told_in_ascii(database: str) -> None:
    assert "no plan at \\udcc3\\udca9.toml" in refused(run(database, "enqueue", "--plan", "é.toml", environment=OLD))


@pytest.mark.parametrize("command", ["watch --once", "errors", "report", "report --json"])
def test_a_full_disk_is_one_sentence(database: str, command: str) -> None:
    fill_queue(database, 60)
    with Path("/dev/full").open("w") as full:
        done = run(database, *command.split(), "--migration", "avatars", stdout=full.fileno())
    assert done.returncode == 2
    assert done.stderr == "rowferry: The output is incomplete: No space left on device.\n"
