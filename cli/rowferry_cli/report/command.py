"""`rowferry report`: what happened to every entry of a migration."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

import click

from rowferry.formatting import (
    count,
    count_batches,
    format_duration,
    format_json,
    show_text,
)
from rowferry_cli.command import Command
from rowferry_cli.log_file import open_own
from rowferry_cli.migration import choose_migration, migration_option
from rowferry_cli.options import json_option

if TYPE_CHECKING:
    from psycopg.rows import DictRow

    from rowferry.db.connection import Connection
    from rowferry_cli.report.data import Report


WIDTH_OF_WORDS = 53
"""Of a terminal of 80 columns, beside the counts."""


def refuse_nameless(_context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Return the path of an option. Raises BadParameter for an empty one, and for `-`."""
    if path in {Path(), Path("-")}:
        raise click.BadParameter("name a file, such as report.html", param=option)
    return path


@click.command("report", cls=Command)
@migration_option
@click.option(
    "--manifest",
    "manifest_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=refuse_nameless,
    help="Write each entry that was neither migrated nor kept to this file, one JSON object per line.",
)
@click.option(
    "--html",
    "page_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=refuse_nameless,
    help="Write the report to this file as one page for a change ticket: it opens offline, and prints.",
)
@json_option
def command(
    migration: str | None, plan_path: Path, manifest_path: Path | None, page_path: Path | None, as_json: bool
) -> int:
    """Report what happened to every entry of a migration, by queue and table: outcomes, attempts, bytes, time.

    Queues come in the order in which they hand on, each with its own words for its outcomes. They work on the same
    entries, so nothing is added up over them.

    The entries are those of the batches: as enqueued while a batch waits, as found once it was processed. They are the
    sum of the outcomes. Where no row moves, an entry that several passes have taken counts several times. The manifest
    names each entry that was not migrated or kept, and why; its lines add up to the report. The tables themselves are
    not read.

    With --html the page also has the plan, the rate over time, errors by reason, attempts and crashes, the result of
    `rowferry verify`, and versions. It needs no script and no network. Passwords, keys and signatures in it are hidden.

    Exit status: 0 all batches are done, 1 some wait or are in ERROR.
    """
    from rowferry.db.connection import connect

    _refuse_same_file(manifest_path, page_path)
    with connect("report", autocommit=True) as connection:
        chosen = choose_migration(connection, migration, plan_path)
        report, lines = _read_and_write(connection, chosen, manifest_path, page_path)
    if as_json:
        click.echo(format_json(report.as_document(), indent=2))
    else:
        _print_report(report)
        if manifest_path is not None:
            click.echo(f"Manifest: {manifest_path}, {count(lines, 'line', 'lines')}")
        if page_path is not None:
            click.echo(f"Page: {page_path}")
    return 0 if report.settled and report.balances else 1


def _refuse_same_file(manifest_path: Path | None, page_path: Path | None) -> None:
    if manifest_path and page_path and os.path.realpath(manifest_path) == os.path.realpath(page_path):
        raise click.UsageError(f"--manifest and --html both name {page_path}: give each a file of its own")


def _read_and_write(
    connection: Connection, migration: str, manifest_path: Path | None, page_path: Path | None
) -> tuple[Report, int]:
    """Return the report and the lines of the manifest; write the files that are named, all of one snapshot."""
    from rowferry_cli.report.data import open_snapshot, read_tables, write_manifest

    lines = 0
    with open_snapshot(connection):
        report = read_tables(connection, migration)
        if manifest_path:
            with _open_file("manifest", manifest_path) as manifest:
                lines = write_manifest(connection, migration, manifest)
        if page_path:
            from rowferry_cli.report.page import make_page

            page = make_page(connection, report, os.environ)
            with _open_file("page", page_path) as file:
                file.write(page)
    return report, lines


@contextmanager
def _open_file(what: str, path: Path) -> Generator[TextIO]:
    """Yield a file to write, which a new one is for its owner alone; an OSError is a UsageError that names it."""
    from rowferry.errors import UsageError

    try:
        with open(path, "w", encoding="utf-8", opener=open_own) as file:
            yield file
    except OSError as error:
        raise UsageError(
            f"The {what} {path} cannot be written ({error.strerror}): name a file in a folder that is there."
        ) from error


def _print_report(report: Report) -> None:
    """Print one block for each queue and table, the conclusion, and the next step."""
    from rowferry_cli.report.verdict import describe_undecided, judge

    click.secho(f"Migration {report.migration}", bold=True)
    for table in report.tables:
        _print_table(table)
    said = judge(report)
    begins_so = said.sentence.startswith(said.word)
    click.echo(f"\n{show_text(said.sentence if begins_so else f'{said.word}: {said.sentence}')}")
    if describe_undecided(report):
        click.echo(f"See why: rowferry errors --migration {report.migration}")


def _print_table(table: DictRow) -> None:
    """Print a table of a queue, with the meanings of its outcomes where the queue is installed here."""
    from rowferry_cli.report.data import COUNTED
    from rowferry_cli.status.chain import find_meanings

    meanings = find_meanings(table["queue"], alone=table["rows"] != "move")
    click.echo(f"\n{table['queue']}: {show_text(table['label'])}")
    click.echo(f"  {'entries':<9} {table['entries']:>13,}")
    for name in COUNTED:
        if table[name] or name == "migrated":
            first, *more = wrap(meanings.get(name, ""), WIDTH_OF_WORDS) or [""]
            click.echo(f"  {name:<9} {table[name]:>13,}  {first}".rstrip())
            for words in more:
                click.echo(f"{'':27}{words}")
    click.echo(f"  {'sum':<9} {sum(table[name] for name in COUNTED):>13,}")
    if table["is_repeated"]:
        click.echo("  of several passes: an entry may count more than once")
    facts = [
        f"{count_batches(table['batches'])}: {table['batches_done']:,} DONE, {table['batches_init']:,} INIT, "
        f"{table['batches_error']:,} ERROR",
        count(table["attempts"], "attempt", "attempts"),
        *([f"{table['bytes']:,} bytes"] if table["bytes"] else []),  # servers that copy by themselves do not tell them
        *([format_duration(table["duration"])] if table["duration"] is not None else []),
    ]
    click.echo(f"  {' · '.join(facts)}")
