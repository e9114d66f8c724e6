"""What is wrong with the words of a command line, in one sentence; click's own sentences where they are clear."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches

import click

from rowferry.errors import UsageError


def describe_usage_error(error: click.UsageError) -> str:
    """Return the sentence without its full stop, and where help is to be had."""
    command = error.ctx.command_path if error.ctx else "rowferry"
    words = _word_number(error) or " ".join(error.format_message().split()).rstrip(".")
    return f"{words} See `{command} --help`" if words.endswith(("?", "?)")) else f"{words}; see `{command} --help`"


def suggest_command(unknown: str, known: Iterable[str]) -> str:
    """Return what to say of a command that there is not."""
    near = get_close_matches(unknown, known, n=1)
    return f"No such command {unknown!r}.{f' Did you mean {near[0]}?' if near else ''}"


def _word_number(error: click.UsageError) -> str | None:
    """Return what to say of a number that is none, or is out of its bounds; None where that is not the mistake."""
    if not isinstance(error, click.BadParameter) or error.param is None:
        return None
    kind = error.param.type
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return None
    name = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    hint = error.param.get_error_hint(error.ctx)
    given = error.message.partition(" is not ")[0]
    return f"Invalid value for {hint}: {given} is not {name}{_word_bounds(kind)}"


def _word_bounds(kind: click.IntRange | click.FloatRange) -> str:
    if kind.min is None:
        return "" if kind.max is None else f" of at most {kind.max:,}"
    return f" of at least {kind.min:,}" if kind.max is None else f" from {kind.min:,} to {kind.max:,}"


def confirm(question: str) -> None:
    """Ask, and return on yes. Raises click.Abort on no, UsageError where there is neither a terminal nor an answer."""
    try:
        answer = click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo()  # ends the line of the question
        raise UsageError("There is no terminal to ask on: add --yes to answer every question with yes.") from None
    if not answer:
        raise click.Abort
