"""`rowferry estimate`: how many requests and bytes, how long, and what bounds it, before a migration."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command, Group
from rowferry_cli.options import Duration, json_option, plan_option

if TYPE_CHECKING:
    from rowferry.plan import Plan
    from rowferry_cli.estimate.result import Estimate, Prices

MOST_SECONDS = timedelta(minutes=10)


def price_option(name: str, what: str, verb: str = "costs") -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Return an option that takes a price."""
    return click.option(name, type=click.FloatRange(0), metavar="PRICE", help=f"What {what} {verb}.")


GROUPS = (
    Group(
        "Costs", "The prices of your providers, in any currency.", ("--egress-price", "--read-price", "--write-price")
    ),
    Group("Sample", "How many objects are looked at.", ("--sample",)),
)


@click.command("estimate", cls=Command, groups=GROUPS)
@plan_option
@click.option(
    "--for",
    "within",
    type=Duration("1m"),
    default="1m",
    show_default=True,
    help="How long to measure at most; it ends sooner once the pace is steady.",
)
@click.option(
    "--sample",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    help="Objects to look at, of all tables together; more narrow the ranges.",
)
@click.option("--copy", is_flag=True, help="Also copy sampled objects to their production keys, to measure writes.")
@click.option(
    "-p",
    "--processes",
    type=click.IntRange(1, 10_000),
    help="Worker processes that the migration will have, on all hosts.  [default: one per core of this host]",
)
@price_option("--egress-price", "a gigabyte (10^9 bytes) that leaves the legacy provider")
@price_option("--read-price", "a thousand GET and HEAD requests", "cost")
@price_option("--write-price", "a thousand PUT, COPY and POST requests", "cost")
@json_option
def command(
    plan_path: Path,
    within: timedelta,
    sample: int,
    copy: bool,
    processes: int | None,
    egress_price: float | None,
    read_price: float | None,
    write_price: float | None,
    as_json: bool,
) -> None:
    """Estimate a migration before it starts: requests, bytes, egress, hours, and what bounds its pace.

    Counts the legacy entries of the plan's tables (of large ones, those in some blocks) and looks at some hundred of
    their objects on both sides. Then it keeps reading objects for up to a minute, as a worker would, with as many
    requests in flight as the servers let through. Ctrl-C stops the measuring, not the report.

    Writes nothing, unless you say --copy: then some of the objects are copied to their production keys, where the
    migration later finds and keeps them. No object is overwritten and no row is changed.

    \b
    To see what it costs as well, in your providers' prices:
      rowferry estimate --egress-price 0.09 --read-price 0.0004 --write-price 0.005

    Exit status: 0 estimated, 2 the plan, a table or a bucket cannot be used.
    """
    from rich.console import Console

    from rowferry.formatting import format_json
    from rowferry.plan_file import read_plan
    from rowferry_cli.estimate.printing import print_estimate
    from rowferry_cli.estimate.result import Prices
    from rowferry_cli.messages import describe_direction
    from rowferry_worker.machine import choose_processes

    if not timedelta(seconds=1) <= within <= MOST_SECONDS:
        raise click.UsageError("--for is out of range: use 1s to 10m")
    plan = read_plan(plan_path)
    plan.require_both_sides()
    prices = Prices(egress_price, read_price, write_price)
    estimate = _estimate(plan, within, sample, prices, processes or choose_processes(), copy=copy)
    if as_json:
        click.echo(format_json(estimate.as_document(), indent=2))
        return
    click.echo("\n".join([f"Migration {plan.name}", *describe_direction(plan)]))
    print_estimate(estimate, Console(highlight=False))


def _estimate(plan: Plan, within: timedelta, sample: int, prices: Prices, processes: int, *, copy: bool) -> Estimate:
    """Count, look, measure, and return the estimate."""
    from rowferry_cli.estimate.assemble import choose_keys, estimate_nothing, put_together, read_database
    from rowferry_cli.estimate.measure import Limits, measure_plan
    from rowferry_cli.reporter import show_spinner
    from rowferry_worker.machine import bound_objects

    with show_spinner() as on_progress:
        tables, queue = read_database(plan, sample, on_progress)
        keys = choose_keys(tables, sample)
        if not keys:
            return estimate_nothing(plan, tables, prices, processes)
        folders = {entries.label for entries in plan.entries if entries.names_folders}
        limits = Limits(
            in_folders=frozenset(place for place, (label, _) in enumerate(keys) if label in folders),
            within=within,
            sample=sample,
            parallel=bound_objects(),
            copy=copy,
            objects=sum(table.count * table.objects_per_entry for table in tables),
            workers=queue.workers,
            pace_is_known=bool(queue.rate),
        )
        measured = measure_plan(plan, [pair for _, pair in keys], limits, on_progress)
    return put_together(plan, tables, keys, measured, queue, prices, processes)
