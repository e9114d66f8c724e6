"""Each option can be set by its variable; a wrong value is one sentence that names it."""

import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from rowferry_cli.command import Command
from rowferry_cli.options import Duration
from support.docs.command_line import find_own_command as find_command
from support.docs.command_line import list_own_options
from support.processes.cli import Done, run_in_this_process


@pytest.fixture
def run_rowferry(tmp_path: Path) -> Callable[..., Done]:
    """Run a command that ends while it reads its options, whichever it is, in this process."""

    def run(*arguments: str, **environment: str) -> Done:
        return run_in_this_process(arguments, {**os.environ, **environment}, tmp_path)

    return run


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
    run_rowferry: Callable[..., Done],
) -> None:
    done = run_rowferry("worker", "--parallel", "0", ROWFERRY_WORKER_PARALLEL="9")
    assert "Invalid value for '--parallel': 0 is not" in done.stderr
    words = {"COMP_WORDS": "rowferry worker --min", "COMP_CWORD": "2"}
    assert "--min-parallel" in run_rowferry(_ROWFERRY_COMPLETE="bash_complete", **words).stdout


def test_an_address_that_kubernetes_puts_into_a_variable_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service called rowferry-exporter sets ROWFERRY_EXPORTER_PORT in every pod."""
    monkeypatch.setenv("ROWFERRY_EXPORTER_PORT", "tcp://10.0.0.7:9465")
    assert find_command("exporter").make_context("exporter", []).params["port"] == 9465
