"""Decides what becomes of rows that hold keys: they get new ones, or stay. Only the user can know."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import click

from rowferry.errors import UsageError
from rowferry.formatting import count, show_text
from rowferry_cli.discover.proposals import KeyTexts, Proposal, follow

Rows = Literal["move", "stay"]
Ask = Callable[[Proposal, KeyTexts], str]
"""Asks for the new prefix of a column's keys; an empty text: the rows stay."""


def choose_rows(proposals: Sequence[Proposal], to: str | None, rows: Rows | None, ask: Ask | None) -> list[Proposal]:
    """Return the proposals with what the user has chosen, by options or when asked.

    `ask` None: there is nobody to ask. Raises UsageError where the choice is missing or cannot be meant.
    """
    open_ones = [(one, one.keys) for one in proposals if one.keys is not None]
    if not open_ones or rows == "stay":
        return [replace(one, keys=None) for one in proposals]
    if to is not None:
        _refuse_one_prefix_for_several(open_ones)
        for _, keys in open_ones:
            if fault := find_fault(to, keys):
                raise UsageError(f"--to is {to!r}: {fault}.")
        return [follow(one, to) for one in proposals]
    if ask is None:
        raise UsageError(_explain_choice(open_ones, rows))
    return [_ask_about(one, ask) for one in proposals]


def find_fault(to: str, keys: KeyTexts) -> str | None:
    """Return why a text cannot be the new prefix of keys, in a clause; None where it can."""
    if to == keys.folder:
        return "the keys begin with that already, so a row could not tell where its object is"
    if not to.endswith("/") or to.startswith("/"):
        return f"write a prefix that ends with a slash and begins with none, such as {to.strip('/') or 'production'}/"
    return None


def _ask_about(proposal: Proposal, ask: Ask) -> Proposal:
    if proposal.keys is None:
        return proposal
    to = ask(proposal, proposal.keys)
    return follow(proposal, to) if to else replace(proposal, keys=None)


def _refuse_one_prefix_for_several(open_ones: Sequence[tuple[Proposal, KeyTexts]]) -> None:
    """Raise UsageError where two folders would become one: two objects could get one key."""
    of_folder = {keys.object_prefix + keys.folder: one.label for one, keys in open_ones}
    if len(of_folder) > 1:
        named = ", ".join(f"{label} ({folder or 'no common folder'})" for folder, label in of_folder.items())
        raise UsageError(
            f"The keys of {show_text(named)} begin differently, so with one --to two objects could get one key: name "
            "one column after the options, as table.column, or choose --rows stay and correct the plan."
        )


def _explain_choice(open_ones: Sequence[tuple[Proposal, KeyTexts]], rows: Rows | None) -> str:
    (first, keys), more = open_ones[0], len(open_ones) - 1
    others = f" (and {count(more, 'more column', 'more columns')})" if more else ""
    holds = show_text(f"The rows of {first.label}{others} hold keys such as {keys.example!r}")
    follows = "add --to with a new prefix, such as --to production/, and each row follows its object"
    if rows == "move":
        return f"{holds}: {follows}."
    return f"{holds}: {follows}; or add --rows stay, and you switch the application when all objects are copied."


def make_question(*, may_stay: bool) -> Ask:
    """Return what asks a person for the new prefix of a column's keys."""

    def ask(proposal: Proposal, keys: KeyTexts) -> str:
        def read(answer: str) -> str:
            fault = find_fault(answer, keys) if answer or not may_stay else None
            if fault is not None:
                raise click.UsageError(fault)
            return answer

        click.echo(show_text(f"{proposal.label} holds keys such as {keys.example!r}."))
        click.echo(
            "  With a new prefix, each row gets its new key as its object arrives, and tells where the object is."
        )
        stay = ""
        if may_stay:
            click.echo("  Without one, rows stay as they are, and you switch the application when all is copied.")
            stay = ", or Enter to leave the rows"
        begin = show_text(f"New prefix for {keys.folder!r}" if keys.folder else "New prefix")
        answer: str = click.prompt(
            f"{begin}, such as production/{stay}", default="", show_default=False, value_proc=read
        )
        return answer

    return ask
