"""Each step of a cutover: which passes are made, since when the switch counts, what is left, and the exit status."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import pytest
from psycopg.types.json import Jsonb

from rowferry.db.connection import connect
from rowferry_cli.cutover import steps as cutover
from rowferry_cli.cutover.steps import Cutover
from rowferry_cli.log_file import log_to_file
from rowferry_cli.migrate import passes
from rowferry_cli.migrate.passes import Run
from rowferry_cli.options import WorkerOptions
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.enqueue import EnqueueRequest
from rowferry_queues.migrate.spec import MIGRATE, MigrateChoices
from support.entries.entry_table import EntryTable

END = """
update rowferry.batch_queue set
    status = case when (o.counts ->> 'failed')::int + (o.counts ->> 'missing')::int > 0 then 'ERROR' else 'DONE' end,
    finished_at = now(), migrated = (o.counts ->> 'migrated')::int, failed = (o.counts ->> 'failed')::int,
    missing = (o.counts ->> 'missing')::int,
    kept = entry_count - (o.counts ->> 'migrated')::int - (o.counts ->> 'failed')::int - (o.counts ->> 'missing')::int
from (select %s::jsonb as counts) as o
where id = %s
"""
Outcomes = dict[str, int]
"""Of the entries of a batch, how many are migrated, missing or failed; the others are kept."""


@dataclass
class Finishers:
    """Workers that end each batch that waits, as `judge` says."""

    table: EntryTable
    judge: Callable[[dict[str, Any]], Outcomes]
    ended_by_mistake: bool = False
    last_words: str = ""
    dead_pids: frozenset[int] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None: ...

    def replace_dead(self) -> int:
        for batch in self.table.batches():
            if batch["status"] == "INIT":
                counts = {"migrated": 0, "missing": 0, "failed": 0} | self.judge(batch)
                self.table.execute(END, (Jsonb(counts), batch["id"]))
        return 0


@dataclass
class Step:
    """What one call of `rowferry cutover` has said, and its exit status."""

    status: int
    words: str


def cut_over(
    table: EntryTable,
    judge: Callable[[dict[str, Any]], Outcomes] = lambda _batch: {},
    *,
    finish: bool = False,
    **choices: Any,
) -> Step:
    """Run a step of the cutover to its end, without a terminal."""
    plan = table.read_plan()
    request = EnqueueRequest(MIGRATE, 100, choices=MigrateChoices(**choices))
    said = io.StringIO()
    workers, log_path = _with_workers(Finishers(table, judge)), Path(os.devnull)
    with workers, connect("cutover", autocommit=True) as connection, log_to_file(log_path) as log:
        reporter = Reporter(yes=True)
        reporter.console.file = said
        run = Run(connection, plan, request, WorkerOptions(processes=None, parallel=None, log_file=None), reporter, log)
        status = Cutover(run, plan.copies_alone, as_json=False).run_to_end(finish=finish)
    return Step(status, said.getvalue())


@contextmanager
def _with_workers(finishers: Finishers) -> Iterator[None]:
    """Give runs these workers, which are asked again at once, and no terminal."""
    with (
        patch.object(Run, "workers", lambda _self: finishers),
        patch.object(passes, "POLL_INTERVAL", timedelta(0)),
        patch.object(sys, "stdin", io.StringIO()),
    ):
        yield


STAYS = {"id": "id", "key": "path", "from": "", "to": "", "rows": "stay", "changed": "updated_at"}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutover, "APART", timedelta(0))


@pytest.fixture
def files(table: EntryTable) -> EntryTable:
    """Three rows that changed long ago, and stay."""
    table.execute("create table public.files (id bigint primary key, path text, updated_at timestamptz)")
    table.execute("insert into public.files select n, 'f' || n, '2020-01-01' from generate_series(1, 3) as n")
    table.plan["entries"] = [{"table": "public.files", **STAYS}]
    return table


def touch(table: EntryTable, number: int) -> None:
    table.execute("update public.files set updated_at = %s where id = %s", (datetime.now(UTC), number))


def switched_at(table: EntryTable) -> datetime | None:
    (row,) = table.execute("select switched_at from rowferry.migration")
    return row["switched_at"]


def began_at(table: EntryTable) -> list[datetime]:
    return [row["began_at"] for row in table.execute("select began_at from rowferry.pass order by number")]


def payloads(table: EntryTable, queue: str = "migrate") -> list[dict[str, Any]]:
    return [batch["payload"] for batch in table.batches() if batch["queue_name"] == queue]


def copy_all(batch: dict[str, Any]) -> dict[str, int]:
    """Copy what migrate reads; verify finds it equal."""
    return {"migrated": batch["entry_count"] if batch["queue_name"] == "migrate" else 0}


def test_the_switch_counts_from_the_moment_that_was_announced(files: EntryTable) -> None:
    """What was written to production since then may be the application's own, and what was before are copies."""
    step = cut_over(files, copy_all)
    assert (step.status, len(began_at(files)), switched_at(files)) == (0, 2, None)
    assert "pass 2 took" in step.words
    assert "Next: switch the application, then run `rowferry cutover --finish`." in step.words
    touch(files, 1)
    step = cut_over(files, finish=True)
    (row,) = files.execute("select moment_at from rowferry.migration")
    assert (step.status, switched_at(files)) == (0, row["moment_at"])
    assert began_at(files)[1] < row["moment_at"]
    assert "is complete: 3 entries verified" in step.words
    assert [payload.get("switched_at") is not None for payload in payloads(files)] == [False, True]
    (verified,) = payloads(files, "verify")
    assert datetime.fromisoformat(verified["switched_at"]) == switched_at(files)


def test_a_confirmed_switch_stays_as_it_was_confirmed(files: EntryTable) -> None:
    cut_over(files, copy_all)
    cut_over(files, finish=True)
    before = switched_at(files)
    for finish in (False, True):
        step = cut_over(files, finish=finish)
        assert (step.status, switched_at(files)) == (0, before)
        assert "was switched, as confirmed" in step.words


def test_what_is_left_at_the_moment_is_said_and_is_the_exit_status(files: EntryTable) -> None:
    step = cut_over(files, lambda batch: {"missing": 1} if batch["queue_name"] == "migrate" else {})
    assert step.status == 1
    assert "1 entry is left all the same: see `rowferry errors` first" in step.words


def test_a_pass_that_goes_on_is_no_measure_of_the_moment(files: EntryTable) -> None:
    files.enqueue()
    step = cut_over(files)
    assert (step.status, len(began_at(files))) == (0, 2)
    assert "Now is the moment" in step.words
    assert "pass 2 took" in step.words, "the first that began here"


def test_a_pass_from_before_the_switch_is_ended_with_the_switch_in_mind(files: EntryTable) -> None:
    """Nor does it overwrite what the application has written since."""
    cut_over(files, copy_all)
    touch(files, 1)
    files.enqueue(on_conflict="overwrite")
    assert payloads(files)[-1]["on_conflict"] == "overwrite"
    assert cut_over(files, finish=True, on_conflict="overwrite").status == 0
    assert {payload["on_conflict"] for payload in payloads(files)} == {"older"}
    assert all("switched_at" in payload for payload in payloads(files)[1:])


def test_after_a_pass_that_went_on_a_whole_one_follows_before_the_verify(files: EntryTable) -> None:
    cut_over(files, copy_all)
    touch(files, 1)
    files.enqueue()
    before = len(began_at(files))
    assert cut_over(files, finish=True).status == 0
    assert len(began_at(files)) == before + 1


@pytest.mark.parametrize(("outcome", "status"), [("missing", 1), ("failed", 1), ("migrated", 0)])
def test_the_verify_says_what_has_no_equal_object_and_what_it_has_copied(
    files: EntryTable, outcome: str, status: int
) -> None:
    cut_over(files, copy_all)
    step = cut_over(files, lambda batch: {outcome: 1} if batch["queue_name"] == "verify" else {}, finish=True)
    assert step.status == status
    if status:
        assert "is not complete: 1 of 3 entries have no equal object in new: see `rowferry errors`" in step.words
    else:
        assert "is complete: 3 entries verified, every object stands in new (1 was copied again by this)." in step.words


def pause(table: EntryTable) -> None:
    table.execute(
        "update rowferry.migration set paused_at = now(), pause_reason = 'No rights.', paused_by_worker = true"
    )


@pytest.mark.parametrize("queue", ["migrate", "verify"])
def test_a_migration_that_workers_have_paused_ends_the_step(files: EntryTable, queue: str) -> None:
    def pause_then(batch: dict[str, Any]) -> dict[str, int]:
        if batch["queue_name"] == queue:
            pause(files)
        return {}

    cut_over(files, copy_all)
    touch(files, 1)
    step = cut_over(files, pause_then, finish=True)
    assert step.status == 1
    assert "No rights" in step.words
    assert "complete" not in step.words


def test_before_the_switch_a_pause_is_no_moment(files: EntryTable) -> None:
    def pause_then(_batch: dict[str, Any]) -> dict[str, int]:
        pause(files)
        return {}

    step = cut_over(files, pause_then)
    assert (step.status, "Now is the moment" in step.words) == (1, False)


@pytest.fixture
def moving(table: EntryTable) -> EntryTable:
    return table.add_legacy(range(3))


@pytest.mark.parametrize("left", [0, 1])
def test_rows_that_move_are_followed_until_none_is_found(moving: EntryTable, left: int) -> None:
    def move(batch: dict[str, Any]) -> dict[str, int]:
        first = int(batch["payload"]["first"])
        moving.execute("update public.avatars set path = 'avatar/' || id where id >= %s", (first + left,))
        return {"migrated": batch["entry_count"] - left, "missing": left}

    step = cut_over(moving, move)
    assert (step.status, switched_at(moving)) == (left, None)
    assert "there is no moment to switch it" in step.words
    assert ("1 entry could not be migrated" in step.words) == bool(left)


def test_rows_that_could_not_move_are_left_of_a_cutover_with_both(files: EntryTable) -> None:
    """Objects without rows wait for the switch; rows that move are followed, and no verify looks at them."""
    files.add_legacy([1])
    files.plan["entries"] = [{"table": "public.avatars", "id": "id", "key": "path", "from": "image/", "to": "a/"}]
    files.plan["objects"] = [{"prefix": "p/", "to": "q/"}]
    step = cut_over(files, lambda batch: {"missing": batch["entry_count"]})
    assert step.status == 1
    step = cut_over(files, finish=True)
    assert step.status == 1
    assert "1 entry could not be migrated (rows unchanged)" in step.words
    assert "fix that, run `rowferry requeue --all`, and run `rowferry cutover --finish` again" in step.words
