"""The list of commands: in sections, each loaded when it is called, others found through an entry point."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from unittest.mock import patch

import pytest

import rowferry_cli
from rowferry_cli import COMMANDS, LAB_COMMANDS
from support.processes.cli import Run, run_in_this_process


def test_every_command_has_a_help_of_its_own(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for name in COMMANDS:
        with subtests.test(name):
            done = run_in_this_process([name, "--help"], os.environ, tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith(f"Usage: rowferry {name} ")


def test_a_command_of_another_distribution_is_found(run_rowferry: Run) -> None:
    found = EntryPoint("zebra", "rowferry_cli.setup.plan:command", rowferry_cli.ENTRY_POINTS)
    with patch("importlib.metadata.entry_points", return_value=[found]):
        assert run_rowferry("zebra", "--example").stdout.startswith("#")
        assert "\n  zebra  " in run_rowferry("--help").stdout
        assert "Did you mean zebra?" in run_rowferry("zebrra").stderr


@pytest.mark.parametrize("name", LAB_COMMANDS)
def test_without_the_lab_its_commands_say_how_to_get_it(tmp_path: Path, name: str) -> None:
    with patch("importlib.metadata.entry_points", return_value=[]):
        done = run_in_this_process([name, "--help"], os.environ, tmp_path)
        listed = run_in_this_process(["--help"], os.environ, tmp_path).stdout
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'rowferry[demo]'" in done.stderr
    assert f"\n  {name}" not in listed


def test_the_version_loads_no_client_and_no_other_distribution() -> None:
    script = """
import sys
import rowferry_cli
sys.argv = ["rowferry", "--version"]
try:
    rowferry_cli.main()
finally:
    print(sorted({"psycopg", "boto3", "botocore", "rich", "rowferry_lab"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["[]"]
