"""The steps of a cutover: passes, the moment, the switch by a person, the last pass, the verify; each may end it."""

import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec
from psycopg.types.json import Jsonb

from rowferry.db.connection import call, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.formatting import count, count_entries, format_json
from rowferry.reports.coverage import read_coverage
from rowferry.reports.progress import Counts, read_counts
from rowferry_cli.clocks import measure_clocks
from rowferry_cli.cutover.moment import PassResult, find_moment
from rowferry_cli.cutover.switch import read_state
from rowferry_cli.messages import INTERRUPTED, describe_pause
from rowferry_cli.migrate.passes import Run, Workers
from rowferry_cli.status.pause import find_pause
from rowferry_enqueue.enqueue import EnqueueRequest
from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices
from rowferry_queues.verify.spec import VERIFY, VerifyChoices

APART = timedelta(seconds=3)
"""Between the last copy before the moment and the moment: by their ages, objects are known to be of before or after."""
PAUSE = timedelta(seconds=10)
"""Between two passes, while a person switches the application."""


@dataclass(slots=True)
class Cutover:
    """One cutover, and how far it has come."""

    run: Run
    waits_for_switch: bool
    """Whether the application must be switched; else its rows tell it where each object is."""
    as_json: bool
    passes: list[PassResult] = field(default_factory=list[PassResult])
    ready_at: datetime | None = None
    """Since when the application may write to the production bucket."""

    def run_to_end(self, *, finish: bool) -> int:
        """Return the exit status. `finish`: a person confirms that the application was switched."""
        self.ready_at = self._find_switch(finish=finish)
        steps = AFTER_SWITCH if self.ready_at is not None else (approach_switch, *AFTER_SWITCH)
        ends = (status for step in steps if (status := step(self)) is not None)
        return next(ends, 0)

    def _find_switch(self, *, finish: bool) -> datetime | None:
        """Return since when the application is switched, as was or is now confirmed; None: it is not yet."""
        state = self.read_state()
        if state is not None and state["switched_at"] is not None:
            since = f"{state['switched_at']:%Y-%m-%d %H:%M:%S %Z}"
            self.print(f"The application was switched, as confirmed (since {since}).")
            return state["switched_at"]
        if not finish:
            return None
        if state is None or state["last_pass_at"] is None:
            name = self.run.plan.name
            raise UsageError(f"Migration {name} has made no pass yet: run `rowferry cutover` before the switch.")
        return state["moment_at"] or state["last_pass_at"]

    def make_pass(self, workers: Workers) -> int:
        """Make one pass, show it, and return the number of batches that it began with."""
        throughput, tables = self.run.next_pass(workers, len(self.passes) + 1)
        counts = throughput.counts
        result = PassResult(
            len(self.passes) + 1,
            throughput.elapsed.total_seconds(),
            counts.finished,
            counts.migrated,
            counts.bytes,
            self.count().unsettled,
            is_whole=not any(table.goes_on for table in tables),
            held_back_by=next((table.held_back_by for table in tables if table.held_back_by), None),
        )
        self.passes.append(result)
        self.print(str(result), result.as_document())
        return sum(table.batches for table in tables)

    @property
    def choices(self) -> MigrateChoices:
        """What the passes before the verify are asked for."""
        chosen = self.run.request.choices
        return chosen if isinstance(chosen, MigrateChoices) else MigrateChoices()

    def choose(self, **changes: Any) -> None:
        """Ask the passes from now on for something else."""
        chosen = msgspec.structs.replace(self.choices, **changes)
        self.run = replace(self.run, request=replace(self.run.request, choices=chosen))

    def overwrite_no_more(self) -> None:
        """Replace only what is older from now on: other production objects may be the application's own."""
        if self.choices.on_conflict == "overwrite":
            self.choose(on_conflict=None)

    @property
    def pause(self) -> object:
        """Why the migration is paused; None: it is not."""
        return find_pause(self.run.connection, self.run.plan.name)

    def count(self) -> Counts:
        """Return the counts of the migration."""
        return read_counts(self.run.connection, self.run.plan.name, MIGRATE.name)

    def read_state(self) -> dict[str, Any] | None:
        """Return what is recorded of the switch; None: there is no such migration."""
        return read_state(self.run.connection, self.run.plan)

    def print(self, words: str, document: dict[str, Any] | None = None) -> None:
        """Print words, and with --json the document, a line on stdout."""
        self.run.reporter.print(words)
        if self.as_json and document is not None:
            click.echo(format_json(document))


def approach_switch(cutover: Cutover) -> int | None:
    """Come to the switch and past it, with workers all the time."""
    with cutover.run.workers() as workers:
        status = pass_until_moment(cutover, workers)
        return wait_for_person(cutover, workers) if status is None else status


def pass_until_moment(cutover: Cutover, workers: Workers) -> int | None:
    """Make passes up to the moment of the switch; end where there is none to wait for, or at a pause."""
    while True:
        added = cutover.make_pass(workers)
        if cutover.pause or (not cutover.waits_for_switch and not added):
            cutover.run.follow_chain(workers)
            return end_early(cutover)
        moment = find_moment(cutover.passes) if cutover.waits_for_switch else None
        if moment is not None:
            time.sleep(APART.total_seconds())
            _announce(cutover, moment)
            return None


def _announce(cutover: Cutover, moment: str) -> None:
    """Record that from now on the application may write to the production bucket, and say so."""
    connection, state = cutover.run.connection, cutover.read_state()
    cutover.ready_at = fetch_one(connection, statement("read_now"))["now"]
    if state is not None:
        with translated_errors():
            call(connection, "note_switch", state["id"], cutover.ready_at, False)
    bucket, left = cutover.run.plan.production.bucket, cutover.passes[-1].unsettled
    document = {"moment": True, "reason": moment, "left": left}
    cutover.print(f"Now is the moment to switch the application to {bucket}: {moment}.", document)
    if left:
        entries = count(left, "entry is", "entries are")
        cutover.print(f"{entries} left all the same: see `rowferry errors` first, or go on without.")
    cutover.overwrite_no_more()


def wait_for_person(cutover: Cutover, workers: Workers) -> int | None:
    """Wait until a person has switched the application, and make passes meanwhile; end without a terminal."""
    if not sys.stdin.isatty() or cutover.as_json:
        cutover.print("Next: switch the application, then run `rowferry cutover --finish`.")
        return 1 if cutover.passes[-1].unsettled else 0
    cutover.print("Switch the application, then press Enter. Until then, passes go on.")
    try:
        while not select.select([sys.stdin], [], [], PAUSE.total_seconds())[0]:
            cutover.make_pass(workers)
    except KeyboardInterrupt:
        cutover.print(INTERRUPTED)
        raise click.exceptions.Abort from None
    if not sys.stdin.readline():  # the terminal has gone
        raise click.exceptions.Abort
    return None


def confirm_switch(cutover: Cutover) -> None:
    """Record the switch, before workers begin with what a pass has left that was interrupted before it."""
    connection, state = cutover.run.connection, cutover.read_state()
    if state is None:
        raise UsageError(f"There is no migration {cutover.run.plan.name} in this database.")
    with translated_errors():
        (row,) = call(connection, "note_switch", state["id"], cutover.ready_at, True)
    cutover.overwrite_no_more()
    skew = measure_clocks(cutover.run.plan, cutover.run.reporter)
    cutover.choose(switched_at=row["note_switch"], skew=skew)
    if cutover.count().batches_init:
        choices = Jsonb(cutover.choices.payload(stays=True))
        with translated_errors():
            call(connection, "renew_batches", state["id"], MIGRATE.name, choices, None)


def make_last_pass(cutover: Cutover) -> int | None:
    """Make a whole pass over what changed up to the switch."""
    with cutover.run.workers() as workers:
        cutover.make_pass(workers)
        while not cutover.passes[-1].is_whole and not cutover.pause:
            cutover.make_pass(workers)
        cutover.run.follow_chain(workers)
    return end_early(cutover) if cutover.pause else None


def end_early(cutover: Cutover) -> int:
    """Say how passes ended that wait for no switch, or that a pause has ended."""
    plan, left = cutover.run.plan, cutover.count().unsettled
    if paused := find_pause(cutover.run.connection, plan.name):
        cutover.print(describe_pause(plan.name, paused))
        return 1
    words = (
        "No legacy entry is left to take. The rows say where each object is: the application has followed row by "
        "row, and there is no moment to switch it."
    )
    cutover.print(words, {"finished": True, "left": left})
    if left:
        cutover.print(f"{count_entries(left)} could not be migrated: see `rowferry errors`.")
    return 1 if left else 0


def verify(cutover: Cutover) -> int:
    """Compare all objects, copy again what is missing or older, and say the result in one sentence."""
    chosen = cutover.choices
    choices = VerifyChoices(repair="older", switched_at=chosen.switched_at, skew=chosen.skew)
    request = EnqueueRequest(VERIFY, cutover.run.request.batch_size, choices=choices)
    cutover.print("Verifying every object …")
    counts = replace(cutover.run, request=request).one_pass()[0].counts
    if cutover.pause:
        return end_early(cutover)
    behind = _count_left_behind(cutover.run)
    left = counts.unsettled + behind
    document = {"finished": not left, "verified": counts.finished, "repaired": counts.migrated, "left": left}
    cutover.print(_describe_end(cutover.run, counts, behind), document)
    if words := read_coverage(cutover.run.connection, cutover.run.plan.name).as_sentence():
        cutover.print(words)
    return 1 if left else 0


def _describe_end(run: Run, counts: Counts, behind: int) -> str:
    """Return what a verify has found; `behind`: entries whose rows should have moved and could not."""
    name, bucket = run.plan.name, run.plan.production.bucket
    again = f" ({count(counts.migrated, 'was', 'were')} copied again by this)" if counts.migrated else ""
    if not counts.unsettled and not behind:
        verified = f"{count_entries(counts.finished)} verified, every object stands in {bucket}{again}"
        return f"Cutover of {name} is complete: {verified}."
    unequal = f"{counts.unsettled:,} of {count_entries(counts.finished)} have no equal object in {bucket}{again}"
    unmoved = f"{count_entries(behind)} could not be migrated (rows unchanged)"
    what = "; ".join([*([unequal] if counts.unsettled else []), *([unmoved] if behind else [])])
    requeue = "fix that, run `rowferry requeue --all`, and " if behind else ""
    then = f"see `rowferry errors`, then {requeue}run `rowferry cutover --finish` again"
    return f"Cutover of {name} is not complete: {what}: {then}."


def _count_left_behind(run: Run) -> int:
    labels = [entries.label for entries in run.plan.entries if entries.rows != "stay"]
    chosen = {"name": run.plan.name, "queue": MIGRATE.name, "labels": labels}
    with translated_errors():
        return int(fetch_one(run.connection, statement("count_left_behind"), chosen)["entries"])


AFTER_SWITCH: tuple[Callable[[Cutover], int | None], ...] = (confirm_switch, make_last_pass, verify)
"""The steps behind the switch. A step returns the exit status where the cutover ends with it."""
