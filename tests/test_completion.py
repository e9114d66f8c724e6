"""The shells that the script is for can read it, and it completes what rowferry knows."""

import shutil
import subprocess

import pytest

from cli import Run
from rowferry_cli import COMMANDS

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_its_shell_can_read(run_rowferry: Run, shell: str) -> None:
    done = run_rowferry("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_ROWFERRY_COMPLETE" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=done.stdout, text=True, check=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_completed(run_rowferry: Run, shell: str) -> None:
    word = "" if shell == "fish" else "1"
    found = run_rowferry(_ROWFERRY_COMPLETE=f"{shell}_complete", COMP_WORDS="rowferry ", COMP_CWORD=word).stdout
    assert [command for command in COMMANDS if command not in found] == []


def test_options_are_completed(run_rowferry: Run) -> None:
    words = {"COMP_WORDS": "rowferry requeue --", "COMP_CWORD": "2"}
    assert "--error-like" in run_rowferry(_ROWFERRY_COMPLETE="bash_complete", **words).stdout


def test_the_help_says_how_to_install_it(run_rowferry: Run) -> None:
    shown = run_rowferry("completion", "--help").stdout
    assert all(shell in shown for shell in SHELLS)
    assert "bash-completion/completions/rowferry" in shown


@pytest.mark.parametrize("arguments", [[], ["tcsh"]])
def test_an_unknown_shell_is_one_sentence(run_rowferry: Run, arguments: list[str]) -> None:
    done = run_rowferry("completion", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("rowferry: ")
    assert done.stderr.count("\n") == 1
