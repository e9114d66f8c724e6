"""Completion of commands and options, which click brings: `_ROWFERRY_COMPLETE=bash_source rowferry`."""

import shutil
import subprocess

import pytest

from rowferry_cli import COMMANDS, LAB_COMMANDS
from support.processes.cli import Run

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_its_shell_can_read(run_rowferry: Run, shell: str) -> None:
    done = run_rowferry(_ROWFERRY_COMPLETE=f"{shell}_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert "_ROWFERRY_COMPLETE" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=done.stdout, text=True, check=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_completed(run_rowferry: Run, shell: str) -> None:
    word = "" if shell == "fish" else "1"
    found = run_rowferry(_ROWFERRY_COMPLETE=f"{shell}_complete", COMP_WORDS="rowferry ", COMP_CWORD=word).stdout
    assert [command for command in (*COMMANDS, *LAB_COMMANDS) if command not in found] == []


def test_the_applications_that_are_known_are_completed(run_rowferry: Run) -> None:
    words = {"COMP_WORDS": "rowferry plan --for ma", "COMP_CWORD": "3"}
    assert run_rowferry(_ROWFERRY_COMPLETE="bash_complete", **words).stdout == "plain,mastodon\nplain,mattermost\n"
