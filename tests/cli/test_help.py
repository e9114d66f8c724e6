"""--help shows the options that people need, --help-advanced all of them with their variables, which set them."""

import re
from collections import Counter

import click
import pytest

from rowferry_cli import cli
from rowferry_cli.command import Command, name_variable
from rowferry_cli.options import Duration
from support.processes.cli import Run

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


def find_command(name: str) -> Command:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, Command), f"{name} has no --help-advanced"
    return command


COMMANDS = {name: find_command(name) for name in cli.list_commands(click.Context(cli))}
OPTIONS = {
    f"{name} {option.opts[-1]}": (command, option) for name, command in COMMANDS.items() for option in command.options
}
GROUPED = [name for name, command in COMMANDS.items() if command.groups]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_short_help_has_six_options_at_most_and_each_option_is_in_one_place(command: Command) -> None:
    assert len(command.common_options) <= MOST_COMMON
    counted = Counter(name for group in command.groups for name in group.options)
    assert set(counted.values()) <= {1}
    assert set(counted) == {option.opts[-1] for option in command.options} - {
        option.opts[-1] for option in command.common_options
    }


@pytest.mark.parametrize("name", GROUPED)
def test_the_short_help_hides_the_rest_and_says_where_it_is(run_rowferry: Run, name: str) -> None:
    done = run_rowferry(name, "--help", COLUMNS="120")
    command = COMMANDS[name]
    options = done.stdout.partition("\nOptions:\n")[2]
    listed = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", options, re.MULTILINE))
    assert listed == {option.opts[-1] for option in command.common_options} | {"--help", "--help-advanced"}
    assert f"Show all {len(command.options)} options with their environment variables." in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", [80, 120])
def test_the_full_help_shows_every_option_with_its_variable(run_rowferry: Run, name: str, columns: int) -> None:
    done = run_rowferry(name, "--help-advanced", COLUMNS=str(columns))
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.partition("\nOptions:")[2].splitlines())) <= columns
    command = COMMANDS[name]
    for option in command.options:
        assert f" {option.opts[-1]} " in done.stdout
        assert f"[{option.envvar}]" in done.stdout
    in_one_line = " ".join(done.stdout.split())
    for group in command.groups:
        assert f"\n{group.title}:\n" in done.stdout
        assert group.sentence in in_one_line


@pytest.mark.parametrize(("command", "option"), OPTIONS.values(), ids=OPTIONS)
def test_every_option_has_a_variable_by_one_rule(command: Command, option: click.Option) -> None:
    name = option.opts[-1]
    assert option.envvar == SHARED_VARIABLES.get(name, name_variable(str(command.name), name))


def test_the_rule_is_the_command_and_the_option_in_capitals() -> None:
    assert name_variable("clean-uploads", "--older-than") == "ROWFERRY_CLEAN_UPLOADS_OLDER_THAN"


def choose_value(option: click.Option) -> str:
    """Return a value that is not the option's default."""
    if option.is_flag:
        return "1"
    if isinstance(option.type, click.Choice):
        return next(choice for choice in option.type.choices if choice != option.default)
    if isinstance(option.type, click.IntRange):
        return str(max(7, option.type.min or 0))
    return "9s" if isinstance(option.type, Duration) else "7"


@pytest.mark.parametrize(("command", "option"), OPTIONS.values(), ids=OPTIONS)
def test_every_variable_sets_its_option(
    command: Command, option: click.Option, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ["3" for parameter in command.params if isinstance(parameter, click.Argument) and parameter.required]
    needed += [f"{other.opts[-1]}=4d" for other in command.options if other.required and other is not option]
    unset = command.make_context(str(command.name), [*needed], resilient_parsing=True).params
    monkeypatch.setenv(str(option.envvar), choose_value(option))
    is_set = command.make_context(str(command.name), [*needed]).params
    assert option.name is not None
    assert is_set.pop(option.name) != unset.pop(option.name)
    assert is_set == unset, "no other option listens to it"


def test_the_command_line_has_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWFERRY_WORKER_QUEUE", "verify revert")
    told = COMMANDS["worker"].make_context("worker", [])
    assert told.params["queues"] == ("verify", "revert")
    told = COMMANDS["worker"].make_context("worker", ["--queue", "migrate"])
    assert told.params["queues"] == ("migrate",)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        (
            "ROWFERRY_WORKER_PARALLEL",
            "many",
            "'many' is not a whole number from 1 to 10,000; see `rowferry worker --help-",
        ),
        ("ROWFERRY_WORKER_PARALLEL", "0", "0 is not a whole number from 1 to 10,000; see"),
        ("ROWFERRY_WORKER_UNTIL_EMPTY", "maybe", "'maybe' is neither 1 nor 0; see `rowferry worker --help`."),
        ("ROWFERRY_LOG_FORMAT", "xml", "'xml' is not one of 'auto', 'text', 'json'; see"),
        ("ROWFERRY_HOST_NAME", "a b", "'a b' is no host's name: use letters, digits, dots and hyphens; see"),
        ("ROWFERRY_WORKER_GRACE", "1y", "use seconds, or a number and s, m, h, d or w (for example 30 or 2m); see"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_the_variable(
    run_rowferry: Run, variable: str, value: str, words: str
) -> None:
    done = run_rowferry("worker", **{variable: value})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr
    assert f" for {variable}: " in done.stderr


def test_an_option_of_the_past_is_one_sentence_with_what_to_do(run_rowferry: Run) -> None:
    for arguments in (["--slots", "4"], ["--slots=4"]):
        done = run_rowferry("worker", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "rowferry: --slots is no longer an option: a worker claims as many batches as it needs, so leave it out; "
            "see `rowferry worker --help`.\n"
        )


def test_a_wrong_value_on_the_command_line_names_the_option(run_rowferry: Run) -> None:
    done = run_rowferry("worker", "--parallel", "0", ROWFERRY_WORKER_PARALLEL="9")
    assert "Invalid value for '--parallel': 0 is not" in done.stderr


def test_an_address_that_kubernetes_puts_into_a_variable_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service called rowferry-exporter sets ROWFERRY_EXPORTER_PORT in every pod."""
    monkeypatch.setenv("ROWFERRY_EXPORTER_PORT", "tcp://10.0.0.7:9465")
    assert COMMANDS["exporter"].make_context("exporter", []).params["port"] == 9465


def test_an_option_is_completed_that_only_the_full_help_shows(run_rowferry: Run) -> None:
    words = {"COMP_WORDS": "rowferry worker --min", "COMP_CWORD": "2"}
    assert "--min-parallel" in run_rowferry(_ROWFERRY_COMPLETE="bash_complete", **words).stdout
