"""Sentences and questions that several commands share, and usage errors in one sentence."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from rowferry.errors import UsageError
from rowferry.formatting import count, count_batches, count_entries, hide_unfit
from rowferry_cli.command import Command, find_variable

if TYPE_CHECKING:
    from rowferry.plan import OnConflict, Plan, Side
    from rowferry_enqueue.items import ItemsEnqueued

NO_TERMINAL = "There is no terminal to ask on: add --yes to answer every question with yes."
INTERRUPTED = "Interrupted: running batches were finished or released. Run the same command again to continue."
DRY_RUN = "Dry run: nothing was written."
APPLICATION = "docs/application.md"
STOPPED = "docs/runbook.md"
"""The page with what to type in each state."""
NO_REASON = "no reason was recorded"


def confirm(question: str) -> None:
    """Ask, and return on yes. Raises click.Abort on no, UsageError where there is neither a terminal nor an answer."""
    try:
        answer = click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo()  # ends the line of the question
        raise UsageError(NO_TERMINAL) from None
    if not answer:
        raise click.Abort


def describe_enqueued(entries: int, batches: int) -> str:
    """Return what was enqueued, and the next step."""
    return f"Enqueued {count_entries(entries)} in {count_batches(batches)}. Next: run `rowferry worker` on any host."


def describe_items(done: ItemsEnqueued) -> str:
    """Return what was enqueued, what was not, and the next step."""
    words = [f"Enqueued {count(done.items, 'item', 'items')} in {count_batches(done.batches)}"]
    if done.doubles:
        words.append(f"{count(done.doubles, 'line', 'lines')} gave way to later ones of the same id")
    if done.replaced:
        words.append(f"{count(done.replaced, 'waiting item has', 'waiting items have')} this content now")
    if done.skipped:
        words.append(f"{count(done.skipped, 'item waits', 'items wait')} there already")
    if done.parked:
        words.append(f"{done.parked:,} of these in ERROR, until `rowferry requeue --all`")
    return f"{'; '.join(words)}. Next: run `rowferry worker` on any host."


def write_requeue(
    pattern: str | None, *, migration: str | None, queue: str | None, on_conflict: OnConflict | None = None
) -> str:
    """Return what to type to requeue the batches of a row of rowferry.error_reasons, and no others.

    `pattern` is its column; None: no reason was recorded, so the command requeues all batches in ERROR. `migration`
    and `queue` are None where there is only one.
    """
    of_migration = f" --migration {shlex.quote(migration)}" if migration is not None else ""
    in_queue = f" --queue {shlex.quote(queue)}" if queue is not None else ""
    which = "--all" if pattern is None else f"--error-like {shlex.quote(hide_unfit(pattern))}"
    ending = f" --on-conflict {on_conflict}" if on_conflict is not None else ""
    return f"rowferry requeue{of_migration}{in_queue} {which}{ending}"


def describe_chosen(on_conflict: OnConflict | None, batches: int) -> str | None:
    """Return for how many batches that waited already a choice holds; None: for none."""
    waiting = count(batches, "waiting batch", "waiting batches")
    return f"--on-conflict {on_conflict} holds for {waiting}, too." if batches else None


def describe_errors(batches: int, where: str = "") -> str:
    """Return how many batches need an operator, and what to type; `where`: in which queue, and since when."""
    then = "`rowferry errors` says why, and what to type; then run this again"
    return f"{count_batches(batches)}{where} in ERROR: {then}."


def describe_pause(migration: str, paused: str) -> str:
    """Return why a command ended before its migration was done, and the next step; `paused` is from find_pause."""
    todo = f"fix that, run `rowferry resume`, then this command again. More: {STOPPED}"
    return f"Migration {migration} is {paused}. Next: {todo}"


def describe_application(plan: Plan) -> str:
    """Return what the application must be able to do before a migration begins."""
    if not plan.rows_move:
        return f"Rows stay as they are: your application uses the legacy bucket until you switch it ({APPLICATION})."
    words = (
        "Rows change one by one, as their objects arrive: your application must find objects in both buckets before "
        f"you go on ({APPLICATION})."
    )
    return f"{words} {describe_switch(plan)}" if plan.copies_alone else words


def describe_switch(plan: Plan) -> str:
    """Return which parts of a plan with both kinds of rows follow by themselves, and which need a switch."""
    moving = [entries.label for entries in plan.entries if entries.rows == "move"]
    others = [part.label for part in plan.parts if part.label not in moving]
    return (
        f"The rows of {', '.join(moving)} say where each object is, and need no switch. "
        f"The switch is for {', '.join(others)}."
    )


def describe_direction(plan: Plan) -> list[str]:
    """Return the sides of a plan, a line each: objects go from legacy to production."""
    if plan.has_both_sides:
        return [
            f"  from  {_describe_side(plan.legacy)} (legacy: only read)",
            f"  to    {_describe_side(plan.production)} (production: written)",
        ]
    return [f"  {side.name} bucket  {_describe_side(side)}" for side in plan.sides]


def _describe_side(side: Side) -> str:
    place = re.sub("//[^/@]*@", "//***@", side.endpoint_url) if side.endpoint_url else f"AWS, {side.region_or_default}"
    profile = f", profile {side.profile}" if side.profile else ""
    return f"s3://{side.bucket} at {place}{profile}"


def describe_usage_error(error: click.UsageError) -> str:
    """Return one sentence, without its full stop, that ends with where to find help."""
    where = f"see `{error.ctx.command_path if error.ctx else 'rowferry'} {_choose_help(error)}`"
    if isinstance(error, click.BadParameter) and error.param is not None:
        error.param_hint = find_variable(error.param, error.ctx) or error.param_hint
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message} S{where[1:]}" if message.endswith(("?", "?)")) else f"{message}; {where}"


def _choose_help(error: click.UsageError) -> str:
    """Return the help that explains the option in question."""
    command = error.ctx.command if error.ctx else None
    option = error.param if isinstance(error, click.BadParameter) else None
    is_advanced = isinstance(command, Command) and option is not None and command.is_advanced(option)
    return "--help-advanced" if is_advanced else "--help"


def suggest_command(unknown: str, known: Iterable[str]) -> str:
    """Return the sentence for a command that does not exist."""
    near = get_close_matches(unknown, known, n=1)
    return f"No such command {unknown!r}.{f' Did you mean {near[0]}?' if near else ''}"
