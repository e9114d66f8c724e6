"""The list of commands, their completion, and the variables of their options: each loaded when it is called."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from unittest.mock import patch

import click
import pytest

import rowferry_cli
from rowferry_cli import COMMANDS, LAB_COMMANDS
from rowferry_cli.command import Command
from rowferry_cli.options import Duration
from support.docs.command_line import find_own_command as find_command
from support.docs.command_line import list_own_options
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


def choose_value(option: click.Option) -> str:
    """Return a value that is not the option's default."""
    if option.is_flag:
        return "1"
    if isinstance(option.type, click.Choice):
        return next(choice for choice in option.type.choices if choice != option.default)
    if isinstance(option.type, click.IntRange):
        return str(max(7, option.type.min or 0))
    return "9s" if isinstance(option.type, Duration) else " ".join(["7"] * option.nargs)


def check_variable(command: Command, option: click.Option, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["3" for parameter in command.params if isinstance(parameter, click.Argument) and parameter.required]
    needed += [f"{other.opts[-1]}=4d" for other in command.options if other.required and other is not option]
    unset = command.make_context(str(command.name), [*needed], resilient_parsing=True).params
    with monkeypatch.context() as patch:
        patch.setenv(str(option.envvar), choose_value(option))
        is_set = command.make_context(str(command.name), [*needed]).params
    assert option.name is not None
    assert is_set.pop(option.name) != unset.pop(option.name)
    assert is_set == unset, "no other option listens to it"


def test_every_variable_sets_its_option(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    options = [(command, option) for command, option in list_own_options() if option.expose_value]
    assert len(options) > 100, "a test without a subject cannot fail"
    for command, option in options:
        with subtests.test(f"{command.name} {option.opts[-1]}"):
            check_variable(command, option, monkeypatch)


def test_the_command_line_has_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWFERRY_WORKER_QUEUE", "verify revert")
    told = find_command("worker").make_context("worker", [])
    assert told.params["queues"] == ("verify", "revert")
    told = find_command("worker").make_context("worker", ["--queue", "migrate"])
    assert told.params["queues"] == ("migrate",)


def test_a_wrong_value_on_the_command_line_names_the_option_which_is_completed_also_where_help_hides_it(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "ROWFERRY_WORKER_PARALLEL": "9"}
    done = run_in_this_process(["worker", "--parallel", "0"], environment, tmp_path)
    assert "Invalid value for '--parallel': 0 is not" in done.stderr
    words = {"_ROWFERRY_COMPLETE": "bash_complete", "COMP_WORDS": "rowferry worker --min", "COMP_CWORD": "2"}
    assert "--min-parallel" in run_in_this_process([], {**os.environ, **words}, tmp_path).stdout


def test_an_address_that_kubernetes_puts_into_a_variable_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service called rowferry-exporter sets ROWFERRY_EXPORTER_PORT in every pod."""
    monkeypatch.setenv("ROWFERRY_EXPORTER_PORT", "tcp://10.0.0.7:9465")
    assert find_command("exporter").make_context("exporter", []).params["port"] == 9465
