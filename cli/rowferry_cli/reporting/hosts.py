"""Builds the tables of hosts and of attempts. Pure."""

from collections.abc import Callable, Sequence

from rowferry.formatting import format_duration
from rowferry_cli.reporting.facts import AttemptFacts, BatchFacts, Facts
from rowferry_cli.reporting.model import Cell, Column, Table
from rowferry_cli.reporting.wording import write_moment

MOST_HOSTS = 50


def tabulate_hosts(facts: Facts) -> Table | None:
    """Return a row a host, those with crashes first, then the most entries; None before the first attempt."""
    hosts = {facts_of.host for facts_of in facts.attempts}
    if not hosts:
        return None
    rows = [
        _build_row(
            host,
            [one for one in facts.attempts if one.host == host],
            [one for one in facts.batches if one.host == host],
        )
        for host in hosts
    ]
    crashed, entries = 3, 5
    rows.sort(key=lambda row: (-int(row[crashed]), -int(row[entries]), str(row[0])))
    numbers = ("Processes", "Attempts", "Crashed", "Lost", "Entries settled", "To decide")
    columns = [Column("Host", "foreign"), *(Column(name, "number") for name in numbers)]
    columns += [Column("Began"), Column("Worked for"), Column("Versions")]
    more = f"{len(rows) - MOST_HOSTS} more hosts." if len(rows) > MOST_HOSTS else ""
    return Table("Hosts, of all queues", columns, rows[:MOST_HOSTS], more)


def _build_row(host: str, attempts: Sequence[AttemptFacts], batches: Sequence[BatchFacts]) -> list[Cell]:
    began, ended = min(one.began_at for one in attempts), max(one.ended_at for one in attempts)
    versions = sorted({version for one in attempts for version in one.versions})
    return [
        host,
        max(one.processes for one in attempts),
        sum(one.attempts for one in attempts),
        sum(one.crashed for one in attempts),
        sum(one.lost for one in attempts),
        sum(one.settled for one in batches),
        sum(one.unsettled for one in batches),
        write_moment(began),
        format_duration(ended - began),
        ", ".join(versions) or "not known any more",
    ]


COUNTED: Sequence[tuple[str, Callable[[AttemptFacts], int]]] = (
    ("Attempts", lambda one: one.attempts),
    ("DONE", lambda one: one.done),
    ("RETRY", lambda one: one.retry),
    ("ERROR", lambda one: one.error),
    ("RELEASED", lambda one: one.released),
    ("LOST", lambda one: one.lost),
    ("Crashed", lambda one: one.crashed),
    ("Running", lambda one: one.running),
)

TRIED: Sequence[Callable[[BatchFacts], int]] = (
    lambda one: one.batches,
    lambda one: one.tried_twice,
    lambda one: one.tried_more,
)


def tabulate_attempts(facts: Facts) -> Table | None:
    """Return a row a queue: its attempts by verdict; None before the first attempt."""
    if not facts.attempts:
        return None
    rows: list[list[Cell]] = []
    for queue in facts.report.queues:
        mine = [one for one in facts.attempts if one.queue == queue]
        rows.append([queue, *(sum(map(read, mine)) for _, read in COUNTED)])
    columns = [Column("Queue"), *(Column(name, "number") for name, _ in COUNTED)]
    note = "Crashed: the worker died during the attempt, and the batch went to another one."
    return Table("Attempts by verdict", columns, rows, note)


def tabulate_tries(facts: Facts) -> Table | None:
    """Return a row a queue: how many attempts its finished batches took; None before the first is finished."""
    rows: list[list[Cell]] = []
    for queue in facts.report.queues:
        mine = [one for one in facts.batches if one.queue == queue]
        batches, twice, more = (sum(map(read, mine)) for read in TRIED)
        if batches:
            rows.append([queue, batches - twice - more, twice, more, sum(one.requeued for one in mine)])
    numbers = ("One attempt", "Two", "More", "Requeued by an operator")
    columns = [Column("Queue"), *(Column(name, "number") for name in numbers)]
    note = "Attempts since a batch was last put in the queue."
    return Table("Finished batches by attempts", columns, rows, note) if rows else None
