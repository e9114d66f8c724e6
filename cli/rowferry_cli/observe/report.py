"""`rowferry report`: what happened to every entry of a migration."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry.formatting import count, count_batches, count_entries, format_duration
from rowferry_cli.command import Command
from rowferry_cli.migration import choose_migration, migration_option
from rowferry_cli.options import json_option

if TYPE_CHECKING:
    from rowferry.reports.report import Report, TableReport


@click.command("report", cls=Command)
@migration_option
@click.option(
    "--manifest",
    "manifest_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write each entry that was neither migrated nor kept to this file, one JSON object per line.",
)
@json_option
def command(migration: str | None, plan_path: Path, manifest_path: Path | None, as_json: bool) -> int:
    """Report what happened to every entry of a migration, by queue and table: outcomes, attempts, bytes, time.

    The entries are those of the batches: as enqueued while a batch waits, as found once it was processed. They are the
    sum of the outcomes. Where no row moves, an entry that several passes have taken counts several times. The manifest
    names each entry that was not migrated or kept, and why; its lines add up to the report. The tables themselves are
    not read.

    Exit status: 0 all batches are done, 1 some wait or are in ERROR.
    """
    import json

    from rowferry.db.connection import connect
    from rowferry.errors import UsageError
    from rowferry.reports.report import read_report

    with ExitStack() as stack:
        connection = stack.enter_context(connect("report", autocommit=True))
        chosen = choose_migration(connection, migration, plan_path)
        try:
            manifest = stack.enter_context(manifest_path.open("w", encoding="utf-8")) if manifest_path else None
            report, lines = read_report(connection, chosen, manifest)
        except OSError as error:
            raise UsageError(f"The manifest {manifest_path} cannot be written: {error.strerror}.") from error
    if as_json:
        click.echo(json.dumps(report.as_document(), indent=2, ensure_ascii=False))
    else:
        _print_report(report)
        if manifest_path is not None:
            click.echo(f"Manifest: {manifest_path}, {count(lines, 'line', 'lines')}")
    return 0 if report.settled and report.balances else 1


def _print_report(report: Report) -> None:
    """Print one block for each queue and table, the conclusion, and the next steps."""
    click.secho(f"Migration {report.migration}", bold=True)
    for table in report.tables:
        _print_table(table)
    if not report.balances:
        click.echo("MISMATCH: the outcomes do not add up to the entries. This is a bug in rowferry.")
    elif report.settled:
        click.echo("All batches are done." if report.tables else "There is no batch.")
        click.echo("The tables were not read: `rowferry status` counts legacy entries.")
    else:
        waiting = sum(table.waiting for table in report.tables)
        failed = sum(table.counts.unsettled for table in report.tables)
        click.echo(f"Unfinished: {waiting:,} pending, {failed:,} failed (see `rowferry errors`).")
    if parked := sum(table.parked_batches for table in report.tables):
        entries = count_entries(sum(table.parked_entries for table in report.tables))
        click.echo(
            f"Parked (set to ERROR by hand): {entries} in {count_batches(parked)}; "
            f"`rowferry requeue --all --migration {report.migration}` requeues all batches in ERROR."
        )
    for label, rows in report.reverted.items():
        click.echo(f"{label}: {count(rows, 'row', 'rows')} reverted, none migrated since: legacy again.")


def _print_table(table: TableReport) -> None:
    counts = table.counts
    click.echo(f"\n{table.queue}: {table.label}")
    click.echo(f"  {'entries':<9} {counts.entries:>13,}")
    for name, number in table.outcomes.items():
        if number or name == "migrated":
            click.echo(f"  {name:<9} {number:>13,}")
    click.echo(f"  {'sum':<9} {counts.waiting + counts.finished:>13,}")
    if table.is_repeated:
        click.echo("  of several passes: an entry may count more than once")
    facts = [
        f"{count_batches(counts.batches)}: {counts.batches_done:,} DONE, {counts.batches_init:,} INIT, "
        f"{counts.batches_error:,} ERROR",
        count(table.attempts, "attempt", "attempts"),
        f"{counts.bytes:,} bytes",
    ]
    if table.duration is not None:
        facts.append(format_duration(table.duration))
    click.echo(f"  {' · '.join(facts)}\n")
