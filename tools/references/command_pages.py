"""The commands as a page of docs/, and as man pages."""

import itertools
from collections.abc import Iterable, Iterator

from references.command_tree import CommandHelp, Option, Options, read_commands, read_program
from references.words import block, fill, mark_help

EXIT_STATUS = "Exit status: "
"""How the paragraph of a help begins that a man page has as a section."""


def write_page() -> Iterator[str]:
    """Yield the paragraphs of docs/commands.md below those that are written by hand."""
    yield fill("Brackets after an option name its bounds, its default and its environment variable.")
    for section, commands in itertools.groupby(read_commands(), key=lambda command: command.section):
        yield f"## {section}"
        for command in commands:
            yield f"### {command.full_name}"
            yield block([command.usage])
            yield from write_help(command.paragraphs)
            for options in command.options:
                yield from write_heading(options)
                if options.options:
                    yield "\n".join(write_option(option) for option in options.options)


def write_heading(options: Options) -> Iterator[str]:
    """Yield what stands above the options of a group."""
    if options.title:
        yield fill(f"**{options.title}.** {mark_help(options.sentence)}")


def write_option(option: Option) -> str:
    """Return an item of a list."""
    variable = [f"`{option.variable}`"] if option.variable else []
    facts = "; ".join([*(mark_help(fact) for fact in option.facts), *variable])
    return fill(f"`{option.names}`: {mark_help(option.help)}" + (f" ({facts})" if facts else ""), "- ", "  ")


def write_help(paragraphs: Iterable[str]) -> Iterator[str]:
    """Yield the paragraphs of a help: their indented lines as blocks."""
    for paragraph in paragraphs:
        for is_verbatim, found in itertools.groupby(paragraph.split("\n"), key=lambda line: line.startswith(" ")):
            lines = list(found)
            yield block(lines) if is_verbatim else fill(mark_help(" ".join(lines)))


def write_man_page(command: CommandHelp, others: Iterable[str], url: str) -> Iterator[str]:
    """Yield the paragraphs of a man page; Sphinx adds NAME. `others`: the names of man pages to see also."""
    yield f"# {command.full_name}"
    yield "## Synopsis"
    yield f"`{command.usage}`"
    yield "## Description"
    yield from write_help(each for each in command.paragraphs if not each.startswith(EXIT_STATUS))
    yield from _write_man_options(command.options)
    for each in command.paragraphs:
        if each.startswith(EXIT_STATUS):
            yield "## Exit status"
            yield fill(mark_help(each.removeprefix(EXIT_STATUS)))
    yield "## See also"
    yield fill(", ".join(f"**{other}**(1)" for other in others))
    yield f"The documentation is at {url}."


def _write_man_options(groups: Iterable[Options]) -> Iterator[str]:
    yield "## Options"
    yield "The variable in brackets sets an option from the environment; the command line has precedence."
    for group in groups:
        if group.title:
            yield f"### {group.title}"
            yield fill(mark_help(group.sentence))
        for option in group.options:
            facts = [*option.facts, *([option.variable] if option.variable else [])]
            text = " ".join([mark_help(option.help), *(f"\\[{mark_help(fact)}\\]" for fact in facts)])
            yield f"`{option.names}`\n" + fill(text, ": ", "  ")


def write_man_pages(url: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each man page, its line in NAME, and its Markdown."""
    program, commands = read_program(), list(read_commands())
    names = [f"rowferry-{command.name}" for command in commands]
    yield "rowferry", program.summary, "\n\n".join(write_man_page(program, names, url))
    for command, name in zip(commands, names, strict=True):
        near = [f"rowferry-{other.name}" for other in commands if other.section == command.section and other != command]
        yield name, command.summary, "\n\n".join(write_man_page(command, ["rowferry", *near], url))
