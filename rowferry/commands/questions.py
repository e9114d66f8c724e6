"""Questions of yes or no; where nobody can answer, what to say instead."""

import sys

import click

from rowferry.errors import UserMistake


def confirm(question: str) -> None:
    """Ask, and return on yes. Raises click.Abort on no, UserMistake where there is neither a terminal nor an answer."""
    try:
        answer = click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo()  # ends the line of the question
        raise UserMistake("There is no terminal to ask on: add --yes to answer every question with yes.") from None
    if not answer:
        raise click.Abort
