"""The final checks of a scenario: nothing lost, nothing doubled, nothing left over, the legacy bucket unchanged."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rowferry.batch import Outcome
from support.entries.entry_table import FROM, TO
from support.processes.processes import wait_for

if TYPE_CHECKING:
    from torture.world import World

MOST_PROPERTIES = 500
"""Of so many production objects the properties are compared; of all of them the bytes."""
LOCKS_END_WITHIN = timedelta(seconds=30)
LOCKS = """
select a.application_name, a.state, l.mode, l.relation::regclass::text as relation
from pg_locks as l join pg_stat_activity as a on l.pid = a.pid
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.application_name like 'rowferry%'
"""
IDLE = """
select application_name, state from pg_stat_activity
where application_name like 'rowferry%' and state like 'idle in transaction%'
"""
OPEN_ATTEMPTS = """
select a.id, a.batch_id, w.pid, w.stopped_at
from rowferry.batch_attempt as a join rowferry.worker as w on a.worker_id = w.id where a.verdict is null
"""


@dataclass
class Expected:
    """In what a scenario's end may differ from that of a calm migration."""

    legacy_left: Collection[str] = ()
    """Ids of rows that must still be legacy; all others must not be."""
    error: Callable[[dict[str, Any]], bool] = lambda _: False
    """Whether a batch may be in ERROR."""
    written: Collection[str] = ()
    """Legacy keys that the application itself has written during the run."""
    strays: Callable[[str], bool] = lambda _: False
    """Whether a production object may be there that no row points at, by its key: its row was deleted, for instance."""
    sum_of_entries: int | None = None
    """What all batches together account for; None: one outcome for each entry of the world."""
    ledger_went_back: bool = False
    """PostgreSQL itself lost commits, as when a standby that had fallen behind is promoted: verdicts among them."""


def run_final_checks(world: World, expected: Expected) -> Iterator[str]:
    """Yield, in words, each thing that does not add up. No worker may be running."""
    for check in CHECKS:
        yield from check(world, expected)


def check_rows(world: World, expected: Expected) -> Iterator[str]:
    """Check every row once more: it is there, its object is right, and it has the form that it should have."""
    there = world.auditor.check_all()
    for row_id in sorted(world.oracle.ids() ^ there):
        yield f"row {row_id} {'appeared' if row_id in there else 'is lost'}"
    left = {row["id"] for row in world.query("select id::text from public.avatars where path like %s", FROM + "%")}
    for row_id in sorted(left ^ set(expected.legacy_left)):
        yield f"row {row_id} {'is still legacy' if row_id in left else 'was migrated, which it should not be'}"


def check_batches(world: World, expected: Expected) -> Iterator[str]:
    """Check that every batch is finished and balances, that each entry has one outcome, and that the report agrees."""
    total = 0
    for batch in world.query("select * from rowferry.batch_queue order by id"):
        outcomes = sum(batch[outcome] for outcome in Outcome)
        total += outcomes
        if batch["status"] == "INIT" or (batch["status"] == "ERROR" and not expected.error(batch)):
            yield f"batch {batch['id']} is {batch['status']}: {batch['error']}"
        if batch["entry_count"] != outcomes:
            yield f"batch {batch['id']} has {batch['entry_count']} entries and {outcomes} outcomes"
    wanted = world.entries if expected.sum_of_entries is None else expected.sum_of_entries
    if total != wanted:
        yield f"{wanted} entries have {total} outcomes"
    report = world.report()
    if not report["balances"]:
        yield "the report does not balance"
    if (reported := sum(table["entries"] for table in report["tables"])) != wanted:
        yield f"the report has {reported} entries instead of {wanted}"


def check_production(world: World, expected: Expected) -> Iterator[str]:
    """Check that production holds one object for each production row, and no others; what travels along, of some."""
    there = set(world.migration.production.listing())
    rows = world.query("select distinct path from public.avatars where path like %s", TO + "%")
    pointed_at = {row["path"] for row in rows}
    for key in sorted(there - pointed_at):
        if not expected.strays(key):
            yield f"production object {key!r} belongs to no row"
    for key in sorted(pointed_at - there):
        yield f"production object {key!r} is not listed"
    some = world.random.sample(sorted(pointed_at & there), min(MOST_PROPERTIES, len(pointed_at & there)))
    copies = {FROM + key.removeprefix(TO): key for key in some}
    untouched = {old: new for old, new in copies.items() if old not in expected.written}
    yield from world.legacy_record.foreign_properties(untouched, world.migration.production)


def check_legacy(world: World, expected: Expected) -> Iterator[str]:
    """Check that the legacy bucket is what it was, byte by byte."""
    yield from world.legacy_record.differences(expected.written)


def check_uploads(world: World, _: Expected) -> Iterator[str]:
    """Check that `rowferry clean-uploads` aborts the uploads that killed workers left open."""
    if world.migration.production.open_uploads():
        world.rowferry("clean-uploads", "--older-than=0m", "--yes")
    for key in world.migration.production.open_uploads():
        yield f"a multipart upload of {key!r} is still open"
    for key in world.migration.legacy.open_uploads():
        yield f"a multipart upload of the legacy object {key!r} is open"


def check_locks(world: World, _: Expected) -> Iterator[str]:
    """Check that no session of a worker holds a lock or a transaction once PostgreSQL has noticed its end."""
    try:
        wait_for(lambda: not (world.query(LOCKS) or world.query(IDLE)), deadline=LOCKS_END_WITHIN)
    except AssertionError:
        yield f"locks are left: {world.query(LOCKS)} {world.query(IDLE)}"


def check_attempts(world: World, expected: Expected) -> Iterator[str]:
    """Check that attempts without a verdict are those of workers that died; the others have signed off."""
    if expected.ledger_went_back:
        return
    died = {death.pid for pool in world.pools for death in pool.deaths} | world.killed_pids
    for attempt in world.query(OPEN_ATTEMPTS):
        if attempt["stopped_at"] is not None or attempt["pid"] not in died:
            yield f"attempt {attempt['id']} at batch {attempt['batch_id']} is open, but its worker did not die"
    for worker in world.query("select id, pid from rowferry.worker where stopped_at is null"):
        if worker["pid"] not in died:
            yield f"worker {worker['id']} has neither died nor signed off"


CHECKS = (check_rows, check_batches, check_production, check_legacy, check_uploads, check_locks, check_attempts)


def read_named(world: World) -> Mapping[tuple[str, int], set[str]]:
    """Return the reasons that `rowferry errors` names, by table without schema, and id: an operator knows no others."""
    named: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for row in json.loads(world.rowferry("errors", "--entries", "--json", "--limit=1000000", statuses=(0, 1))):
        table = row["entries"].removeprefix("public.").partition(".")[0]
        named[table, int(row["entry_id"])].add(row["reason"])
    return named
