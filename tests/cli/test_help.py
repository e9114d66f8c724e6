"""--help shows the options that people need, --help-advanced all of them with their variables, named by one rule."""

import re
from collections import Counter
from pathlib import Path

import pytest

from rowferry_cli.command import Command, name_variable
from support.docs.command_line import find_own_command as find_command
from support.docs.command_line import list_commands, list_own_options
from support.processes.cli import Done, run_in_this_process

pytestmark = pytest.mark.texts

SHARED_VARIABLES = {
    "--plan": "ROWFERRY_PLAN",
    "--log-format": "ROWFERRY_LOG_FORMAT",
    "--host-name": "ROWFERRY_HOST_NAME",
    "--lock-timeout": "ROWFERRY_LOCK_TIMEOUT",
    "--lost-after": "ROWFERRY_LOST_AFTER",
    "--idle-timeout": "ROWFERRY_IDLE_TIMEOUT",
    "--pgbouncer": "ROWFERRY_PGBOUNCER",
    "--role-password": "ROWFERRY_ROLE_PASSWORD",
}
"""Variables that several commands read, or that a file may hold the value of."""
MOST_COMMON = 6


def ask(folder: Path, *arguments: str, columns: int = 120) -> Done:
    """Run a command that only prints its help, whichever it is, in this process."""
    return run_in_this_process(arguments, {"COLUMNS": str(columns)}, folder)


def test_the_short_help_has_six_options_at_most_and_each_option_is_in_one_place(subtests: pytest.Subtests) -> None:
    for name in list_commands():
        command = find_command(name)
        with subtests.test(name):
            assert len(command.common_options) <= MOST_COMMON
            counted = Counter(name for group in command.groups for name in group.options)
            assert set(counted.values()) <= {1}
            assert set(counted) == {option.opts[-1] for option in command.options} - {
                option.opts[-1] for option in command.common_options
            }


def test_the_short_help_hides_the_rest_and_says_where_it_is(tmp_path: Path, subtests: pytest.Subtests) -> None:
    grouped = [name for name in list_commands() if find_command(name).groups]
    assert len(grouped) > 10, "a test without a subject cannot fail"
    for name in grouped:
        with subtests.test(name):
            shown = ask(tmp_path, name, "--help").stdout
            command = find_command(name)
            options = shown.partition("\nOptions:\n")[2]
            listed = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", options, re.MULTILINE))
            assert listed == {option.opts[-1] for option in command.common_options} | {"--help", "--help-advanced"}
            assert f"Show all {len(command.options)} options with their environment variables." in shown


def check_full_help(command: Command, done: Done, columns: int) -> None:
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.partition("\nOptions:")[2].splitlines())) <= columns
    for option in command.options:
        assert f" {option.opts[-1]} " in done.stdout
        assert f"[{option.envvar}]" in done.stdout
    in_one_line = " ".join(done.stdout.split())
    for group in command.groups:
        assert f"\n{group.title}:\n" in done.stdout
        assert group.sentence in in_one_line


def test_the_full_help_shows_every_option_with_its_variable(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for name in list_commands():
        for columns in (80, 120):
            with subtests.test(f"{name}, {columns} columns"):
                done = ask(tmp_path, name, "--help-advanced", columns=columns)
                check_full_help(find_command(name), done, columns)


def test_every_option_has_a_variable_by_one_rule(subtests: pytest.Subtests) -> None:
    for command, option in list_own_options():
        name = option.opts[-1]
        with subtests.test(f"{command.name} {name}"):
            assert option.envvar == SHARED_VARIABLES.get(name, name_variable(str(command.name), name))


def test_the_rule_is_the_command_and_the_option_in_capitals() -> None:
    assert name_variable("clean-uploads", "--older-than") == "ROWFERRY_CLEAN_UPLOADS_OLDER_THAN"
