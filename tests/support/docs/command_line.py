"""The commands and options of rowferry, and the targets of make, as the docs name them."""

import re

import click

from rowferry_cli import cli
from rowferry_cli.command import Command
from support.checkout import ROOT


def list_commands() -> list[str]:
    return cli.list_commands(click.Context(cli))


def find_command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def list_options(name: str) -> list[click.Option]:
    return [parameter for parameter in find_command(name).params if isinstance(parameter, click.Option)]


def find_own_command(name: str) -> Command:
    command = find_command(name)
    assert isinstance(command, Command), f"{name} has no --help-advanced"
    return command


def list_own_options() -> list[tuple[Command, click.Option]]:
    """Return each option of each command."""
    return [(command, option) for command in map(find_own_command, list_commands()) for option in command.options]


def parse_command(words: list[str]) -> None:
    """Have click parse a command line without running it. Raises click.UsageError for what it does not know."""
    context = click.Context(cli, info_name="rowferry")
    for word in words:
        # These end the parsing as soon as click meets them.
        if word in {"--help", "-h", "--version"}:
            return
    name, command, rest = cli.resolve_command(context, words)
    assert command is not None
    command.make_context(name, rest, parent=context)


def list_make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
