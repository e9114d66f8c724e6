"""`rowferry cutover`: short passes up to the moment of the switch, then a last pass and a verify."""

import select
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
from psycopg.types.json import Jsonb

from rowferry.db.connection import call, connect, fetch_one, name_database, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.formatting import count, count_entries, format_json
from rowferry.logs import log_to_file
from rowferry.plan import OnConflict, Plan
from rowferry.reports.coverage import read_coverage
from rowferry.reports.pause import find_pause
from rowferry.reports.progress import Counts, read_counts
from rowferry_cli.cutover.moment import PassResult, find_moment
from rowferry_cli.cutover.switch import confirm_abandoned, measure_clocks, note_switched_back, read_state
from rowferry_cli.messages import INTERRUPTED, describe_direction, describe_pause, describe_switch
from rowferry_cli.migrate.passes import Run, Workers, name_log
from rowferry_cli.migrate.run import prepare_database
from rowferry_cli.options import WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.enqueue import EnqueueRequest
from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices
from rowferry_queues.verify.spec import VERIFY, VerifyChoices

APART = timedelta(seconds=3)
"""Between the last copy before the moment and the moment: by their ages, objects are known to be of before or after."""
PAUSE = timedelta(seconds=10)
"""Between two passes, while a person switches the application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverOptions:
    """The options of the command."""

    batch_size: int
    processes: int | None
    parallel: int | None
    on_conflict: OnConflict | None
    finish: bool
    switched_back: bool
    as_json: bool
    log_file: Path | None
    yes: bool

    @property
    def workers(self) -> WorkerOptions:
        """Return the workers of this host."""
        return WorkerOptions(processes=self.processes, parallel=self.parallel, log_file=self.log_file)


def run_cutover(plan: Plan, options: CutoverOptions) -> int:
    """Run the command and return its exit status: 0, or 1 when entries are left or a person must act."""
    plan.require_both_sides()
    reporter = Reporter(yes=options.yes, to_stderr=options.as_json)
    waits_for_switch = plan.copies_alone
    if not waits_for_switch and (options.finish or options.switched_back):
        raise UsageError(
            f"The rows of migration {plan.name} say where each object is, so there is no switch to confirm: run "
            "`rowferry cutover` without --finish and --switched-back."
        )
    if options.finish and options.on_conflict == "overwrite":
        raise UsageError(
            "After the switch, --on-conflict overwrite would replace what the application has written to "
            "production: run `rowferry cutover --finish` without it, then see what `rowferry errors` names."
        )
    reporter.print(f"Cutover of migration {plan.name} in {name_database()}")
    for line in describe_direction(plan):
        reporter.print(line)
    if plan.copies_alone and plan.rows_move:
        reporter.print(describe_switch(plan))
    if not options.finish:
        reporter.confirm("Begin?")
    with connect("cutover", autocommit=True) as connection:
        prepare_database(connection, plan, reporter)
        if options.switched_back:
            return note_switched_back(connection, plan, reporter)
        skew = None
        if waits_for_switch and not options.finish:  # the last pass measures for itself
            skew = measure_clocks(plan, reporter)
            confirm_abandoned(connection, plan, reporter)
        choices = MigrateChoices(on_conflict=options.on_conflict, skew=skew)
        request = EnqueueRequest(MIGRATE, options.batch_size, choices=choices)
        log_path = options.log_file or name_log(plan, request)
        reporter.print(f"Log: {log_path}")
        with log_to_file(log_path) as log:
            run = Run(connection, plan, request, options.workers, reporter, log)
            return Cutover(run, waits_for_switch, options.as_json).run_to_end(finish=options.finish)


@dataclass(slots=True)
class Cutover:
    """One cutover, from the passes that precede the switch to the verify behind it."""

    run: Run
    waits_for_switch: bool
    """Whether the application must be switched; else its rows tell it where each object is."""
    as_json: bool
    passes: list[PassResult] = field(default_factory=list[PassResult])

    def run_to_end(self, *, finish: bool) -> int:
        """Return the exit status. `finish`: a person confirms that the application was switched."""
        state = self._read_state()
        if state is not None and state["switched_at"] is not None:
            self._print(
                f"The application was switched, as confirmed (since {state['switched_at']:%Y-%m-%d %H:%M:%S %Z})."
            )
            return self._finish(state["switched_at"])
        if finish:
            if state is None or state["last_pass_at"] is None:
                name = self.run.plan.name
                raise UsageError(f"Migration {name} has made no pass yet: run `rowferry cutover` before the switch.")
            return self._finish(state["moment_at"] or state["last_pass_at"])
        with self.run.workers() as workers:
            ready_at = self._pass_until_moment(workers)
            if ready_at is None:
                self.run.follow_chain(workers)
                return self._end_early()
            self._overwrite_no_more()
            if not self._is_confirmed(workers):
                return 1 if self.passes[-1].unsettled else 0
        return self._finish(ready_at)

    def _pass_until_moment(self, workers: Workers) -> datetime | None:
        """Make passes up to the moment, and return when that is; None: there is none to wait for, or a pause."""
        while True:
            result, added = self._pass(workers)
            if find_pause(self.run.connection, self.run.plan.name) or (not self.waits_for_switch and not added):
                return None
            moment = find_moment(self.passes) if self.waits_for_switch else None
            if moment is not None:
                time.sleep(APART.total_seconds())
                ready_at = self._note_moment()
                self._announce(moment, result)
                return ready_at

    def _pass(self, workers: Workers) -> tuple[PassResult, int]:
        """Make one pass, show it, and return it with the number of batches that it began with."""
        run, number = self.run, len(self.passes) + 1
        throughput, tables = run.next_pass(workers, number)
        counts = throughput.counts
        result = PassResult(
            number,
            throughput.elapsed.total_seconds(),
            counts.finished,
            counts.migrated,
            counts.bytes,
            self._count().unsettled,
            is_whole=not any(table.goes_on for table in tables),
            held_back_by=next((table.held_back_by for table in tables if table.held_back_by), None),
        )
        self.passes.append(result)
        self._print(str(result), result.as_document())
        return result, sum(table.batches for table in tables)

    def _note_moment(self) -> datetime:
        """Record that from now on the application may write to the production bucket, and return the time."""
        now, state = fetch_one(self.run.connection, statement("read_now"))["now"], self._read_state()
        if state is not None:
            with translated_errors():
                call(self.run.connection, "note_moment", state["id"], now)
        return now

    def _announce(self, moment: str, result: PassResult) -> None:
        bucket = self.run.plan.production.bucket
        self._print(
            f"Now is the moment to switch the application to {bucket}: {moment}.",
            {"moment": True, "reason": moment, "left": result.unsettled},
        )
        if result.unsettled:
            entries = count(result.unsettled, "entry is", "entries are")
            self._print(f"{entries} left all the same: see `rowferry errors` first, or go on without.")

    def _is_confirmed(self, workers: Workers) -> bool:
        """Wait for a person, and make passes meanwhile; without a terminal return False at once."""
        if not sys.stdin.isatty() or self.as_json:
            self._print("Next: switch the application, then run `rowferry cutover --finish`.")
            return False
        self._print("Switch the application, then press Enter. Until then, passes go on.")
        try:
            while not select.select([sys.stdin], [], [], PAUSE.total_seconds())[0]:
                self._pass(workers)
        except KeyboardInterrupt:
            self._print(INTERRUPTED)
            raise click.exceptions.Abort from None
        if not sys.stdin.readline():  # the terminal has gone
            raise click.exceptions.Abort
        return True

    def _end_early(self) -> int:
        """Say how passes ended that wait for no switch, or that a pause has ended."""
        plan, left = self.run.plan, self._count().unsettled
        if paused := find_pause(self.run.connection, plan.name):
            self._print(describe_pause(plan.name, paused))
            return 1
        words = (
            "No legacy entry is left to take. The rows say where each object is: the application has followed row by "
            "row, and there is no moment to switch it."
        )
        self._print(words, {"finished": True, "left": left})
        if left:
            self._print(f"{count_entries(left)} could not be migrated: see `rowferry errors`.")
        return 1 if left else 0

    def _finish(self, ready_at: datetime) -> int:
        """Make the last pass and verify; return the exit status."""
        state = self._read_state()
        if state is None:
            raise UsageError(f"There is no migration {self.run.plan.name} in this database.")
        with translated_errors():
            (row,) = call(self.run.connection, "confirm_switch", state["id"], ready_at)
        self._overwrite_no_more()
        self._choose(switched_at=row["confirm_switch"], skew=measure_clocks(self.run.plan, self.run.reporter))
        if self._count().batches_init:  # of a pass that was interrupted before the switch
            choices = Jsonb(self.choices.payload(stays=True))
            with translated_errors():
                call(self.run.connection, "renew_batches", state["id"], MIGRATE.name, choices, None)
        with self.run.workers() as workers:
            self._pass(workers)
            while not self.passes[-1].is_whole and not find_pause(self.run.connection, self.run.plan.name):
                self._pass(workers)
            self.run.follow_chain(workers)
        if find_pause(self.run.connection, self.run.plan.name):
            return self._end_early()
        return self._verify(row["confirm_switch"])

    def _overwrite_no_more(self) -> None:
        """Replace only what is older from now on: other production objects may be the application's own."""
        if self.choices.on_conflict == "overwrite":
            self._choose(on_conflict=None)

    @property
    def choices(self) -> MigrateChoices:
        """What the passes before the verify are asked for."""
        chosen = self.run.request.choices
        return chosen if isinstance(chosen, MigrateChoices) else MigrateChoices()

    def _choose(self, **changes: Any) -> None:
        chosen = msgspec.structs.replace(self.choices, **changes)
        self.run = replace(self.run, request=replace(self.run.request, choices=chosen))

    def _verify(self, switched_at: datetime) -> int:
        """Compare all objects, copy again what is missing or older, and say the result in one sentence."""
        choices = VerifyChoices(repair="older", switched_at=switched_at, skew=self.choices.skew)
        request = EnqueueRequest(VERIFY, self.run.request.batch_size, choices=choices)
        self._print("Verifying every object …")
        counts = replace(self.run, request=request).one_pass()[0].counts
        if find_pause(self.run.connection, self.run.plan.name):
            return self._end_early()
        behind = self._count_left_behind()
        left, name, bucket = counts.unsettled + behind, self.run.plan.name, self.run.plan.production.bucket
        again = f" ({count(counts.migrated, 'was', 'were')} copied again by this)" if counts.migrated else ""
        if left:
            unequal = (
                f"{counts.unsettled:,} of {count_entries(counts.finished)} have no equal object in {bucket}{again}"
            )
            unmoved = f"{count_entries(behind)} could not be migrated (rows unchanged)"
            what = "; ".join([*([unequal] if counts.unsettled else []), *([unmoved] if behind else [])])
            requeue = "fix that, run `rowferry requeue --all`, and " if behind else ""
            sentence = (
                f"Cutover of {name} is not complete: {what}: see `rowferry errors`, then {requeue}"
                "run `rowferry cutover --finish` again."
            )
        else:
            sentence = (
                f"Cutover of {name} is complete: {count_entries(counts.finished)} verified, every object stands in "
                f"{bucket}{again}."
            )
        document = {"finished": not left, "verified": counts.finished, "repaired": counts.migrated, "left": left}
        self._print(sentence, document)
        if words := read_coverage(self.run.connection, name).as_sentence():
            self._print(words)
        return 1 if left else 0

    def _count_left_behind(self) -> int:
        """Return the entries whose rows should have moved and could not."""
        plan = self.run.plan
        labels = [entries.label for entries in plan.entries if entries.rows != "stay"]
        with translated_errors():
            found = fetch_one(
                self.run.connection,
                statement("count_left_behind"),
                {"name": plan.name, "queue": MIGRATE.name, "labels": labels},
            )
        return int(found["entries"])

    def _count(self) -> Counts:
        return read_counts(self.run.connection, self.run.plan.name, MIGRATE.name)

    def _read_state(self) -> dict[str, Any] | None:
        return read_state(self.run.connection, self.run.plan)

    def _print(self, words: str, document: dict[str, Any] | None = None) -> None:
        """Print words, and with --json the document, a line on stdout."""
        self.run.reporter.print(words)
        if self.as_json and document is not None:
            click.echo(format_json(document))
