"""`rowferry errors`: what failed and why."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry.formatting import count_batches, count_entries, hide_unfit, show_text
from rowferry_cli.options import json_option

if TYPE_CHECKING:
    from rowferry.db.connection import DictRow


@click.command("errors")
@click.option(
    "--plan", "plan_path", type=click.Path(path_type=Path), help="Only the migration of this plan; left out: all."
)
@click.option("--entries", "by_entry", is_flag=True, help="One by one instead of grouped by reason.")
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1), help="Reasons, or entries, to show at most."
)
@json_option
def command(plan_path: Path | None, by_entry: bool, limit: int, as_json: bool) -> None:
    """Say what keeps batches in ERROR, grouped by reason, and how to put them back in the queue.

    Batches that will be tried again by themselves are not shown.
    """
    from rowferry.db.connection import connect, translated_errors
    from rowferry.db.statements import statement
    from rowferry.plan_file import read_plan

    parameters = {"migration": read_plan(plan_path).name if plan_path else None, "limit": limit}
    query = statement("failed_entries" if by_entry else "error_groups")
    with connect("errors", autocommit=True) as connection, translated_errors():
        rows = connection.execute(query, parameters).fetchall()
    if as_json:
        click.echo(json.dumps(rows, indent=2, default=str, ensure_ascii=False))
        return
    if not rows:
        click.echo("No entry keeps a batch in ERROR." if by_entry else "No batch is in ERROR.")
        return
    for row in rows:
        (_show_entry if by_entry else _show_group)(row)
    if rows[0]["total"] > len(rows):
        click.echo(f"… and {rows[0]['total'] - len(rows):,} more: --limit {rows[0]['total']} shows all.")
    if not by_entry:
        click.echo("All of them: rowferry requeue --all     One by one: rowferry errors --entries")


def _show_group(row: DictRow) -> None:
    """Print a reason, an example, and the command that requeues its batches."""
    counts = f"{count_entries(row['entries'])} in {count_batches(row['batches'])}"
    click.secho(f"{row['outcome']}: {show_text(row['reason'])}", bold=True, nl=False)
    click.echo(f"  ({counts} of {row['migration']}, last at {row['last_failed_at']:%Y-%m-%d %H:%M:%S %Z})")
    if row["example_key"] is not None:
        click.echo(f"    for example  {show_text(row['example_key'])}: {show_text(row['example_error'])}")
    pattern = hide_unfit(escape_like(row["reason"] or ""))
    click.echo(f"    try again    rowferry requeue --error-like {shlex.quote(pattern)}\n")


def _show_entry(row: DictRow) -> None:
    click.secho(f"{row['entries']} {show_text(row['entry_id'])}", bold=True, nl=False)
    click.echo(f"  {show_text(row['key'])}")
    click.echo(f"    {row['outcome']}: {show_text(row['error'])}  (batch {row['batch_id']}, attempt {row['attempt']})")


def escape_like(text: str) -> str:
    r"""Return a LIKE pattern that matches just this text: `\`, `%` and `_` stand for themselves."""
    return text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
