"""`rowferry demo`: the whole thing, on servers of its own."""

import click

from rowferry_cli.command import Command


@click.command("demo", cls=Command, short_help="Watch a whole migration on this machine, with servers of its own.")
@click.option("--entries", default=8000, show_default=True, type=click.IntRange(10, 1_000_000), help="Rows to make.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 16), help="Worker processes.")
def command(entries: int, workers: int) -> int:
    """Start a PostgreSQL and an S3 server in a temporary folder, fill them, and migrate.

    On the way a worker is killed and some objects are missing, to show what happens then. Everything is stopped and
    removed at the end. Needs neither Docker nor root.
    """
    from rowferry_lab.demo import run_demo

    return run_demo(entries, workers)
