"""`rowferry check`: the plan against the real thing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry.errors import DatabaseUnavailable, UsageError
from rowferry.formatting import show_text
from rowferry.plan import OnConflict, Plan
from rowferry_cli.options import allow_empty_option, json_option, on_conflict_option, plan_option

if TYPE_CHECKING:
    from rich.console import Console

    from rowferry.s3.listing import OnProgress
    from rowferry_enqueue.finding import Finding

SIGNS = {"fine": ("✓", "green"), "problem": ("✗", "bold red"), "note": ("·", "yellow")}


@click.command("check")
@plan_option
@on_conflict_option
@allow_empty_option
@json_option
def command(plan_path: Path, on_conflict: OnConflict, allow_empty: bool, as_json: bool) -> None:
    """Hold the plan against the real database and buckets, and say every problem, not only the first.

    Looks at the legacy objects of some 100 entries, and shows what becomes of their keys. Writes a probe object to the
    production bucket, as rowferry-check-<random>, with copies beside it, to learn what the server keeps of an object,
    and removes them again. Nothing else is written, and the legacy side is only read.

    Exit status: 0 no problem, 2 at least one.
    """
    import json
    from dataclasses import asdict

    from rich.console import Console

    from rowferry.plan_file import read_plan
    from rowferry_cli.run.spinner import show_spinner

    plan = read_plan(plan_path)
    with show_spinner() as tell:
        findings = _check(plan, on_conflict, allow_empty, tell)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        show_findings(findings, Console(highlight=False))
    refuse_problems(findings)


def _check(plan: Plan, on_conflict: OnConflict, allow_empty: bool, tell: OnProgress) -> list[Finding]:
    """Return the findings; without a database, those about the buckets all the same."""
    from rowferry.db.connection import connect
    from rowferry_enqueue.check import check_plan
    from rowferry_enqueue.check_buckets import check_buckets
    from rowferry_enqueue.finding import problem

    try:
        with connect("check", autocommit=True) as connection:
            return check_plan(connection, plan, on_conflict=on_conflict, allow_empty=allow_empty, on_progress=tell)
    except DatabaseUnavailable as error:
        return [problem(error), *check_buckets(plan, tell)]


def show_findings(findings: Sequence[Finding], console: Console) -> None:
    """Print the check-list: ✓ fine, ✗ a problem and what to do about it, · good to know."""
    for finding in findings:
        sign, style = SIGNS[finding.level]
        console.print(sign, style=style, end=" ")
        style = "bold" if finding.level == "problem" else None
        console.print(show_text(finding.what), markup=False, soft_wrap=True, style=style)
        if finding.remedy:
            console.print(f"    → {show_text(finding.remedy)}", markup=False, soft_wrap=True)


def refuse_problems(findings: Sequence[Finding]) -> None:
    """Raise UsageError, one sentence, when there is a problem among the findings."""
    problems = [finding for finding in findings if finding.level == "problem"]
    if len(problems) == 1:
        (only,) = problems
        raise UsageError(f"{only.what}; {only.remedy}." if only.remedy else f"{only.what}.")
    if problems:
        raise UsageError(f"{len(problems)} problems stand in the way of migration; nothing was migrated.")
