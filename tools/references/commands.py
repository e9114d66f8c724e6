"""The commands as a page of docs/, and as man pages: what --help-advanced says of each, as it says it."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import click
from click.testing import CliRunner

from references.words import block
from rowferry_cli import SECTIONS, cli

OTHERS = "Try out"
"""The heading of commands of other distributions, as `rowferry --help` has it."""
WIDTH = 70
"""Columns of the help: a man page has ten more."""


class CommandHelp(NamedTuple):
    """What a command says of itself."""

    name: str
    section: str
    summary: str
    help: str


def read_commands() -> list[CommandHelp]:
    """Return all commands in the order of `rowferry --help`."""
    listed = {name: (title, line) for title, section in SECTIONS.items() for name, (_, line) in section.items()}
    context, found = click.Context(cli, info_name="rowferry"), list[CommandHelp]()
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        section, summary = listed.get(name, (OTHERS, command.get_short_help_str(WIDTH)))
        found.append(CommandHelp(name, section, summary, read_help(name, "--help-advanced")))
    return found


def read_help(*arguments: str) -> str:
    """Return what the program says when it is asked for help."""
    return (
        CliRunner().invoke(cli, [*arguments], terminal_width=WIDTH, prog_name="rowferry", catch_exceptions=False).output
    )


def write_page() -> Iterator[str]:
    """Yield the paragraphs of docs/commands.md below those that are written by hand."""
    for section, commands in itertools.groupby(read_commands(), key=lambda command: command.section):
        yield f"## {section}"
        for command in commands:
            yield f"### rowferry {command.name}"
            yield block(command.help.splitlines())


def write_man_pages(url: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each man page, its line in NAME, and its Markdown."""
    commands = read_commands()
    names = [f"rowferry-{command.name}" for command in commands]
    summary = " ".join((cli.help or "").partition("\n\n")[0].split())
    yield "rowferry", summary, write_man_page("rowferry", read_help("--help"), names, url)
    for name, command in zip(names, commands, strict=True):
        yield name, command.summary, write_man_page(f"rowferry {command.name}", command.help, ["rowferry"], url)


def write_man_page(title: str, text: str, others: list[str], url: str) -> str:
    """Return the Markdown of a man page; Sphinx adds NAME. `others`: the names of man pages to see also."""
    links = ", ".join(f"**{other}**(1)" for other in others)
    parts = [f"# {title}", "## Description", block(text.splitlines()), "## See also", links]
    return "\n\n".join([*parts, f"The documentation is at {url}."])
