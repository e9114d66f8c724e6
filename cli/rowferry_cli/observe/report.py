"""`rowferry report`: the account of a migration."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.options import json_option, plan_option

if TYPE_CHECKING:
    from rowferry.reports.report import Account, TableAccount


@click.command("report")
@click.argument("name", required=False)
@plan_option
@click.option(
    "--manifest",
    "manifest_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write whatever was neither migrated nor kept to this file, one JSON object a line.",
)
@json_option
def command(name: str | None, plan_path: Path, manifest_path: Path | None, as_json: bool) -> int:
    """Account for a migration, by queue and table: its entries and what became of them, attempts, bytes, time.

    NAME is the migration; left out, it is that of the plan, or the only one. The entries are those of the batches: as
    enqueued where they wait, as found where they were worked on; they are the sum of the outcomes. The manifest names
    each entry that was not migrated or kept, and why; its lines add up to the account. The tables are not looked at.

    Exit status: 0 all is settled, 1 something waits or is in ERROR.
    """
    import json

    from rowferry.db.connection import connect
    from rowferry.errors import UsageError
    from rowferry.formatting import count
    from rowferry.reports.report import read_account
    from rowferry_cli.choose_migration import choose_migration

    with ExitStack() as until:
        connection = until.enter_context(connect("report", autocommit=True))
        migration = choose_migration(connection, name, plan_path)
        try:
            manifest = until.enter_context(manifest_path.open("w", encoding="utf-8")) if manifest_path else None
            account, lines = read_account(connection, migration, manifest)
        except OSError as error:
            raise UsageError(f"The manifest {manifest_path} cannot be written: {error.strerror}.") from error
    if as_json:
        click.echo(json.dumps(account.as_document(), indent=2, ensure_ascii=False))
    else:
        _print(account)
        if manifest_path is not None:
            click.echo(f"Manifest: {manifest_path}, {count(lines, 'line', 'lines')}")
    return 0 if account.settled and account.balances else 1


def _print(account: Account) -> None:
    """Print one block for each queue and table, and the conclusion."""
    click.secho(f"Migration {account.migration}", bold=True)
    for table in account.tables:
        _print_table(table)
    if not account.balances:
        click.echo("THE ACCOUNT DOES NOT BALANCE: this is a defect of rowferry.")
    elif account.settled:
        click.echo("All batches are settled." if account.tables else "There is no batch.")
        click.echo("The tables were not looked at: `rowferry status` counts what is legacy.")
    else:
        waiting = sum(table.waiting for table in account.tables)
        unsettled = sum(table.counts.unsettled for table in account.tables)
        click.echo(f"Not settled: {waiting:,} wait, {unsettled:,} need a look (`rowferry errors`).")
    _print_next(account)


def _print_next(account: Account) -> None:
    """Print what a person has to know of batches that somebody has parked, and of rows that were put back."""
    from rowferry.formatting import count, count_batches, count_entries

    if batches := sum(table.parked_batches for table in account.tables):
        entries = count_entries(sum(table.parked_entries for table in account.tables))
        click.echo(
            f"Parked (set to ERROR by hand): {entries} in {count_batches(batches)}; "
            f"`rowferry requeue --all --migration {shlex.quote(account.migration)}` puts back all that is in ERROR."
        )
    for label, rows in account.reverted.items():
        put_back = count(rows, "row was", "rows were")
        click.echo(f"{label}: {put_back} put back by `rowferry revert`, and nothing has migrated since: legacy again.")


def _print_table(table: TableAccount) -> None:
    from rowferry.formatting import count, count_batches
    from rowferry.reports.progress import show_time

    counts = table.counts
    click.echo(f"\n{table.queue}: {table.label}")
    click.echo(f"  {'entries':<9} {counts.entries:>13,}")
    for name, number in table.outcomes.items():
        if number or name == "migrated":
            click.echo(f"  {name:<9} {number:>13,}")
    click.echo(f"  {'sum':<9} {counts.waiting + counts.finished:>13,}")
    facts = [
        f"{count_batches(counts.batches)}: {counts.batches_done:,} DONE, {counts.batches_init:,} INIT, "
        f"{counts.batches_error:,} ERROR",
        count(table.attempts, "attempt", "attempts"),
        f"{counts.bytes:,} bytes",
    ]
    if table.duration is not None:
        facts.append(show_time(table.duration))
    click.echo(f"  {' · '.join(facts)}\n")
