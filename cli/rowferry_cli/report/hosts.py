"""Builds the tables of hosts and of attempts. Pure."""

from collections.abc import Callable, Sequence

from rowferry.reports.report import find_time_between
from rowferry_cli.report.facts import AttemptFacts, BatchFacts, Facts
from rowferry_cli.report.model import Cell, Column, Table
from rowferry_cli.report.wording import write_duration, write_moment

MOST_ROWS = 50


def tabulate_hosts(facts: Facts) -> Table | None:
    """Return a row a host and queue, crashes first, then the most entries of a queue; None before the first attempt."""
    if not facts.attempts:
        return None
    finished = {(one.host, one.queue): one for one in facts.batches}
    order = {queue: place for place, queue in enumerate(facts.report.queues)}
    pairs = [(one, finished.get((one.host, one.queue))) for one in facts.attempts]
    pairs.sort(key=lambda pair: (-pair[0].crashed, order[pair[0].queue], -pair[1].settled if pair[1] else 0))
    rows = [_build_row(*pair) for pair in pairs]
    numbers = ("Processes", "Attempts", "Crashed", "Lost", "Entries settled", "Need an operator")
    columns = [Column("Host", "foreign"), Column("Queue"), *(Column(name, "number") for name in numbers)]
    columns += [Column("Began"), Column("Worked for"), Column("Versions")]
    more = f"{len(rows) - MOST_ROWS} more." if len(rows) > MOST_ROWS else ""
    return Table("Hosts, and what they did in each queue", columns, rows[:MOST_ROWS], more)


def _build_row(attempts: AttemptFacts, batches: BatchFacts | None) -> list[Cell]:
    return [
        attempts.host,
        attempts.queue,
        attempts.processes,
        attempts.attempts,
        attempts.crashed,
        attempts.lost,
        batches.settled if batches else 0,
        batches.unsettled if batches else 0,
        write_moment(attempts.began_at),
        write_duration(find_time_between(attempts.began_at, attempts.ended_at)),
        ", ".join(sorted(attempts.versions)) or "not known any more",
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
