"""`python -m book_import`: make the tables and the items, check what was imported, and import the naive way."""

import json
import os
import time
from pathlib import Path
from typing import Any

import click
import psycopg

from book_import.check import find_differences
from book_import.items import generate_items
from book_import.naive import DONE, fill_queue, run_naive
from book_import.tables import TABLES, accept_nameless, create_tables

Items = click.argument("file", type=click.Path(exists=True, path_type=Path))
COUNT_SOON = 1.5
"""Seconds after which the server shows what a session that has ended counted."""
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


@click.group()
def main() -> None:
    """Import books into 30 tables of the database that DATABASE_URL names."""


def connect() -> psycopg.Connection[Any]:
    """Connect to the database."""
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def read_items(file: Path) -> list[dict[str, Any]]:
    """Return the items of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@main.command()
def tables() -> None:
    """Make the tables anew, all empty."""
    with connect() as connection:
        create_tables(connection)
    click.echo(f"{len(TABLES)} empty tables in the schema book")


@main.command()
def relax() -> None:
    """Let the tables accept books without a name."""
    with connect() as connection:
        accept_nameless(connection)
    click.echo("books without a name are accepted now")


@main.command()
@click.option("--count", default=4000, show_default=True, help="How many books.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same books.")
@click.option("--names", default=500, show_default=True, help="Different names for each table: fewer are hotter.")
@click.option("--broken", default=0, show_default=True, help="How many lack a name, which its table refuses.")
def items(count: int, seed: int, names: int, broken: int) -> None:
    """Write books to standard output, a JSON object each line."""
    for item in generate_items(count, seed=seed, names=names, broken=broken):
        click.echo(json.dumps(item))


@main.command()
@Items
@click.option("--relaxed", is_flag=True, help="Expect books without a name in all tables.")
def check(file: Path, relaxed: bool) -> None:
    """Compare the tables with the items of a file: each must be counted once in each table that accepts it."""
    with connect() as connection:
        differences = find_differences(connection, read_items(file), stops=not relaxed)
    for line in differences[:10]:
        click.echo(line)
    if differences:
        raise click.ClickException(f"{len(differences)} rows differ from the items")
    click.echo(f"{len(TABLES)} tables count each item once")


@main.command()
@Items
@click.option("--batch-size", default=50, show_default=True, help="Items in a transaction.")
@click.option("--processes", default=8, show_default=True, help="Processes.")
@click.option("--consumers", default=10, show_default=True, help="Consumers of each process.")
@click.option("--seconds", default=60.0, show_default=True, help="Give up after so long.")
def naive(file: Path, batch_size: int, processes: int, consumers: int, seconds: float) -> None:
    """Import the items of a file into empty tables the naive way; print the time and the deadlocks."""
    books = read_items(file)
    with connect() as connection:
        create_tables(connection)
        fill_queue(connection, [books[first : first + batch_size] for first in range(0, len(books), batch_size)])
        ((before,),) = connection.execute(DEADLOCKS).fetchall()
        took = run_naive(os.environ["DATABASE_URL"], processes, consumers, seconds)
        time.sleep(COUNT_SOON)
        ((deadlocks,),) = connection.execute(DEADLOCKS).fetchall()
        ((done, batches),) = connection.execute(DONE).fetchall()
    click.echo(f"naive: {done} of {batches} batches in {took:.1f} s, {deadlocks - before} deadlocks")


if __name__ == "__main__":
    main()
