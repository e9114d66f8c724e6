"""`rowferry estimate`: how many requests and bytes, how long, and how many dollars, before a migration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from rowferry.formatting import format_duration, format_json, show_text
from rowferry_cli.command import Command
from rowferry_cli.messages import describe_direction
from rowferry_cli.options import json_option, plan_option


@click.command("estimate", cls=Command)
@plan_option
@click.option("--sample", type=click.IntRange(2), default=500, show_default=True, help="Objects of each table to see.")
@click.option("-p", "--processes", type=click.IntRange(1), help="Workers, on all hosts.  [default: one per core]")
@click.option("--gigabits", type=click.FloatRange(0.001), default=1.0, show_default=True, help="Of the link, a second.")
@json_option
def command(plan_path: Path, sample: int, processes: int | None, gigabits: float, as_json: bool) -> None:
    """Estimate a migration before it starts: requests, bytes, hours and dollars. It only reads.

    Counts the legacy entries, and sends a HEAD to both sides for the objects of some. The rest is arithmetic: what a
    worker sends for each object, as the plan has it copied. A range holds 95 % of what the sample leaves open. Dollars
    are by the prices in docs/providers.md, Amazon S3's where they are not known.

    \b
    The time has two ends:
      at the limits   3,500 requests/s to each side, or the plan's limits; 1,400 of each process; the link
      at the latency  16 objects in flight for each process: it begins with 64, and keeps what helps

    Exit status: 0 estimated, 2 the plan, a table or a bucket cannot be used.
    """
    from rowferry.plan_file import read_plan
    from rowferry_cli.estimate.figures import make_estimate
    from rowferry_cli.estimate.sample import take_sample
    from rowferry_cli.reporter import show_spinner
    from rowferry_worker.machine import choose_processes

    plan = read_plan(plan_path)
    plan.require_both_sides()
    with show_spinner():
        sampled = take_sample(plan, sample)
    limits = {"processes": processes or choose_processes(), "bytes_per_second": gigabits * 10**9 / 8}
    estimate = make_estimate(plan, *sampled, limits)
    lines = [f"Migration {plan.name}", *describe_direction(plan), *_tabulate(estimate)]
    click.echo(format_json(estimate, indent=2) if as_json else "\n".join(map(show_text, lines)))


def _tabulate(estimate: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a table, and what bounds the time."""
    from rich.filesize import decimal

    def show(name: str, found: dict[str, float], write: Callable[[float], str] = "{:,.0f}".format) -> str:
        low, middle, high = (write(found[key]) for key in ("low", "estimate", "high"))
        return f"{name:<32}{middle:>12}  {'exact' if low == high else f'{low} – {high}'}"

    yield f"{'entries':<32}{estimate['entries']:>12,}  exact"
    for name, found in estimate["objects"].items():
        if found["estimate"]:
            yield show(f"objects {name.replace('_', ' ')}", found)
    for name, key in (("bytes to copy", "bytes"), ("egress of legacy", "egress_bytes")):
        yield show(name, estimate[key], lambda size: decimal(round(size)))
    requests, seconds, latency = estimate["requests"], estimate["seconds"], estimate["latency_seconds"]
    for side, took in latency.items():
        yield from (f"{f'{side} {name}':<32}{number:>12,}" for name, number in requests[side].items())
        yield f"{f'{side} HeadObject takes':<32}{1000 * took:>9,.1f} ms"
    yield show("requests", requests["total"])
    yield show("dollars", estimate["costs"]["total"], "{:,.2f}".format)
    yield f"{'prices':<32}{', '.join(f'{name} of {whose}' for name, whose in estimate['prices'].items())}"
    for end, words in (("at_limits", f"at the limits: {seconds['bound']}"), ("at_latency", "at the latency")):
        yield f"{'time':<32}{format_duration(timedelta(seconds=seconds[end])):>12}  {words}"
    yield from (f"Note: {note}." for note in estimate["notes"])
    yield f"Next: {estimate['next']}"
