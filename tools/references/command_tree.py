"""The commands as click knows them: usage, help, options by group, with defaults, bounds and variables."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import click

from rowferry_cli import SECTIONS, cli
from rowferry_cli.command import Command

OTHERS = "Try out"
"""The heading of commands of other distributions, as `rowferry --help` has it."""

_DEFAULT = re.compile(r"\s*\[(default: [^\]]+)\]$")
"""How a help text says a default that click does not know."""
_RANGE = re.compile(r"(?:(\d+)<=)?x(?:<=(\d+)|>=(\d+))?")


@dataclass(frozen=True, slots=True)
class Option:
    """An option as the help shows it."""

    names: str
    """With its value: `-l, --limit N`."""
    help: str
    facts: tuple[str, ...]
    """Default and bounds, in words."""
    variable: str | None


@dataclass(frozen=True, slots=True)
class Options:
    """Options under a heading of --help-advanced; the common ones have none."""

    title: str
    sentence: str
    options: list[Option]


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """What a command's --help-advanced says."""

    name: str
    section: str
    summary: str
    usage: str
    paragraphs: list[str]
    """Of the help. A line that is indented is shown as it stands."""
    options: list[Options] = field(default_factory=list[Options])

    @property
    def full_name(self) -> str:
        """Return what a user types; for the group itself, the program."""
        return f"rowferry {self.name}".strip()


def read_program() -> CommandHelp:
    """Return the help of the program itself."""
    context = click.Context(cli, info_name="rowferry", **cli.context_settings)
    helped = read_paragraphs(cli.help or "")
    summary = helped[0]
    options = [describe(option, context) for option in cli.get_params(context) if isinstance(option, click.Option)]
    return CommandHelp("", "", summary, _usage(cli, context), helped, [Options("", "", options)])


def read_commands() -> Iterator[CommandHelp]:
    """Yield all commands in the order of `rowferry --help`."""
    group = click.Context(cli, info_name="rowferry")
    listed = {name: (title, line) for title, section in SECTIONS.items() for name, (_, line) in section.items()}
    for name in cli.list_commands(group):
        command = cli.get_command(group, name)
        assert command is not None
        section, summary = listed.get(name, (OTHERS, command.get_short_help_str(80)))
        context = click.Context(command, info_name=name, parent=group)
        usage, helped = _usage(command, context), read_paragraphs(command.help or "")
        if command.epilog:
            helped += read_paragraphs(command.epilog)
        yield CommandHelp(name, section, summary, usage, helped, list(read_options(command, context)))


def read_options(command: click.Command, context: click.Context) -> Iterator[Options]:
    """Yield the common options, then those of each group."""
    own = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if not isinstance(command, Command):
        yield Options("", "", [describe(option, context) for option in own])
        return
    yield Options("", "", [describe(option, context) for option in command.common_options])
    for group in command.groups:
        found = [describe(option, context) for option in command.options if option.opts[-1] in group.options]
        yield Options(group.title, group.sentence, found)


def describe(option: click.Option, context: click.Context) -> Option:
    """Return an option as its help record and its extra facts tell of it."""
    record = option.get_help_record(context)
    assert record is not None
    extra = option.get_help_extra(context)
    text = option.help or ""
    facts = _DEFAULT.findall(text)
    if default := extra.get("default"):
        facts.append(f"default: {default}")
    if bounds := extra.get("range"):
        facts.append(word_range(bounds))
    if extra.get("required"):
        facts.append("required")
    variable = option.envvar if isinstance(option.envvar, str) else None
    return Option(record[0], _DEFAULT.sub("", text), tuple(facts), variable)


def word_range(bounds: str) -> str:
    """Return click's `1<=x<=64` as `1 to 64`, `x>=1` as `at least 1`; others stay as they are."""
    found = _RANGE.fullmatch(bounds)
    if not found:
        return bounds
    lowest, highest, least = found.groups()
    return f"at least {least}" if least else f"{lowest} to {highest}" if lowest else f"at most {highest}"


def read_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a click help text, each as one line, but for those that click does not wrap."""
    found: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        first, *lines = paragraph.split("\n")
        found.append("\n".join(lines) if first == "\b" else " ".join([first, *lines]))
    return found


def _usage(command: click.Command, context: click.Context) -> str:
    return " ".join([context.command_path, *command.collect_usage_pieces(context)])
