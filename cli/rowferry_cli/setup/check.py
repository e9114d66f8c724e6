"""`rowferry check`: compare the plan with the real database and buckets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry.errors import DatabaseUnavailable, UsageError
from rowferry.formatting import format_json, show_text
from rowferry.plan import OnConflict, Plan
from rowferry_cli.command import Command
from rowferry_cli.messages import describe_direction
from rowferry_cli.options import allow_empty_option, json_option, on_conflict_option, plan_option

if TYPE_CHECKING:
    from rich.console import Console

    from rowferry.progress import OnProgress
    from rowferry_enqueue.checks.finding import Finding

SIGNS = {"fine": ("✓", "green"), "problem": ("✗", "bold red"), "part": ("!", "bold yellow"), "note": ("·", "yellow")}


@click.command("check", cls=Command)
@plan_option
@on_conflict_option
@allow_empty_option
@json_option
def command(plan_path: Path, on_conflict: OnConflict | None, allow_empty: bool, as_json: bool) -> int:
    """Check the plan against the real database and buckets, and list every problem, not only the first.

    Reads the legacy objects of about 100 entries and shows their new keys. Writes a probe object to the production
    bucket (rowferry-check-<random>, with copies beside it) to learn which properties the server keeps, and deletes it
    again. Records in the database, for `rowferry status` and `rowferry report`, which folders of the legacy bucket the
    plan does not name. Nothing else is written; the legacy side is only read.

    Exit status: 0 no problem, 1 a named part would not be migrated (marked !), 2 nothing would (marked ✗).
    """
    from dataclasses import asdict

    from rich.console import Console

    from rowferry.plan_file import read_plan
    from rowferry_cli.reporter import show_spinner

    plan = read_plan(plan_path)
    console = Console(highlight=False)
    if not as_json:
        click.echo("\n".join([f"Migration {plan.name}", *describe_direction(plan)]))
    with show_spinner(console if console.is_terminal and not as_json else None) as on_progress:
        findings = _check(plan, on_conflict, allow_empty, on_progress)
        found = list(findings) if as_json else print_findings(findings, console)
    if as_json:
        click.echo(format_json([asdict(finding) for finding in found], indent=2))
    return judge(found)


def _check(plan: Plan, on_conflict: OnConflict | None, allow_empty: bool, on_progress: OnProgress) -> Iterator[Finding]:
    """Yield the findings; if the database is unavailable, those about the buckets."""
    from rowferry.db.connection import connect
    from rowferry.reports.coverage import Coverage, record_coverage
    from rowferry.reports.facts import record_facts
    from rowferry_enqueue.check import check_plan
    from rowferry_enqueue.checks.buckets.access import check_buckets, check_readable_buckets
    from rowferry_enqueue.checks.finding import problem

    coverage: list[Coverage] = []
    facts: dict[str, bool | str] = {}
    try:
        with connect("check", autocommit=True) as connection:
            yield from check_plan(
                connection,
                plan,
                on_conflict=on_conflict,
                allow_empty=allow_empty,
                on_progress=on_progress,
                coverage=coverage,
                facts=facts,
            )
            for found in coverage:
                record_coverage(connection, plan.name, found)
            record_facts(connection, plan.name, facts)
    except DatabaseUnavailable as error:
        look = check_buckets if plan.has_both_sides and plan.parts else check_readable_buckets
        yield problem(error)
        yield from look(plan, on_progress)


def print_findings(findings: Iterable[Finding], console: Console) -> list[Finding]:
    """Print each finding as it comes, and return all: ✓ fine, ✗ a problem, ! a part that would not move, · a note."""
    from rich.text import Text

    printed: list[Finding] = []
    for finding in findings:
        sign, style = SIGNS[finding.level]
        what = Text.assemble(
            (sign, style), " ", (show_text(finding.what), "bold" if finding.level == "problem" else "")
        )
        console.print(what, soft_wrap=True)
        if finding.remedy:
            console.print(f"    → {show_text(finding.remedy)}", markup=False, soft_wrap=True)
        printed.append(finding)
    return printed


def judge(findings: Sequence[Finding]) -> int:
    """Return the exit status: 0, or 1 where a part would not be migrated.

    Raises UsageError, in one sentence, if any finding is a problem.
    """
    problems = [finding for finding in findings if finding.level == "problem"]
    if len(problems) == 1:
        raise UsageError(problems[0].sentence)
    if problems:
        raise UsageError(f"{len(problems)} problems prevent the migration; nothing was migrated.")
    return int(any(finding.level == "part" for finding in findings))
