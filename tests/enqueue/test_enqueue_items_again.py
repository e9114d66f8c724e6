"""`rowferry enqueue --items` of ids that are known already: the newest content of an id counts, and none is lost."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rowferry.db.connection import connect
from rowferry.errors import UsageError
from rowferry.queues import find_queue
from rowferry_enqueue import items as module
from rowferry_enqueue.items import ItemsEnqueued, enqueue_items
from support.entries.entry_table import EntryTable, trusted
from support.postgres.roles import grant, log_in, new_roles
from support.processes.cli import Run
from support.processes.processes import wait_for

WORKERS_HERE = True
QUEUE = "items_alone"
BLOCKED = """
select 1 from pg_stat_activity
where application_name = 'rowferry enqueue' and wait_event_type = 'Lock' and state = 'active'
"""


def make(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"id": number, "value": value} for number, value in values.items()]


def add(table: EntryTable, items: Iterable[dict[str, Any]], batch_size: int = 500) -> ItemsEnqueued:
    with connect("enqueue", autocommit=True) as connection:
        return enqueue_items(connection, table.read_plan(), find_queue(QUEUE), items, batch_size=batch_size)


def written(table: EntryTable) -> dict[str, tuple[str, int]]:
    rows = table.execute("select id, value, times from public.notes")
    return {row["id"]: (row["value"], row["times"]) for row in rows}


def work(run_rowferry: Run) -> None:
    assert run_rowferry("run", QUEUE, "--processes", "1", "--yes").returncode in {0, 1}


def test_new_content_takes_the_place_of_what_waits(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the role of an enqueuer, which may not update a batch."""
    add(noted, make({"A-1": "9.90", "A-2": "24.00", "A-3": "1.00"}))
    newer = make({"A-1": "8.90", "A-2": "24.00"})
    (tmp_path / "prices.jsonl").write_text("".join(json.dumps(each) + "\n" for each in newer))
    with new_roles(noted.dsn) as roles:
        grant(noted, roles)
        with monkeypatch.context() as as_enqueuer:
            as_enqueuer.setenv("DATABASE_URL", log_in(noted, roles["enqueuer"]))
            done = run_rowferry("enqueue", "--queue", QUEUE, "--items", "prices.jsonl", "--yes")
    assert done.stdout == (
        "Enqueued 0 items in 0 batches; 1 waiting item has this content now; 1 item waits there already. "
        "Next: run `rowferry worker` on any host.\n"
    )
    work(run_rowferry)
    assert written(noted) == {"A-1": ("8.90", 1), "A-2": ("24.00", 1), "A-3": ("1.00", 1)}


def test_a_settled_item_comes_again_although_others_keep_its_batch_in_error(
    noted: EntryTable, run_rowferry: Run
) -> None:
    noted.plan["migration"]["max_attempts"] = 1
    add(noted, make({"A-1": "9.90", "B-1": "bad", "B-2": "bad"}))
    work(run_rowferry)
    assert noted.statuses() == {"ERROR"}
    done = add(noted, make({"A-1": "8.90", "B-1": "1.00", "B-2": "bad"}))
    assert done == ItemsEnqueued(batches=1, items=1, skipped=1, replaced=1, parked=2)
    work(run_rowferry)
    assert written(noted) == {"A-1": ("8.90", 2)}
    assert run_rowferry("requeue", "--all").returncode == 0
    work(run_rowferry)
    assert written(noted) == {"A-1": ("8.90", 2), "B-1": ("1.00", 1)}


@pytest.mark.parametrize("line", [2, 20], ids=["in the same group", "in a later group"])
def test_of_several_lines_with_one_id_the_last_counts_wherever_it_is(
    noted: EntryTable, run_rowferry: Run, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS", 5)
    items = make({str(number): "first" for number in range(22)})
    items.insert(line, {"id": "1", "value": "last"})
    done = add(noted, items, batch_size=3)
    assert (done.items, done.doubles + done.replaced) == (22, 1)
    assert sum(len(batch["payload"]["items"]) for batch in noted.batches()) == 22
    work(run_rowferry)
    assert written(noted) == {str(n): ("last" if n == 1 else "first", 1) for n in range(22)}


END = "update rowferry.batch_queue set status = 'DONE', migrated = entry_count"
PUT_BACK = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
select migration_id, queue_name, payload, entry_count, max_attempts from rowferry.batch_queue;
update rowferry.batch_queue set status = 'DONE', entry_count = 0 where id = (select min(id) from rowferry.batch_queue)
"""


@pytest.mark.versions
@pytest.mark.parametrize(
    ("ends", "done"),
    [(END, ItemsEnqueued(batches=1, items=1)), (PUT_BACK, ItemsEnqueued(replaced=1))],
    ids=["done", "split off"],
)
def test_a_claimed_item_is_waited_for_so_that_its_old_content_does_not_win(
    noted: EntryTable, ends: str, done: ItemsEnqueued
) -> None:
    add(noted, make({"A-1": "9.90"}))
    with psycopg.connect(noted.dsn) as worker, ThreadPoolExecutor() as pool:
        worker.execute("select 1 from rowferry.batch_queue for update")
        adding = pool.submit(add, noted, make({"A-1": "8.90"}))
        wait_for(lambda: noted.execute(trusted(BLOCKED)))
        worker.execute(trusted(ends))
        worker.commit()
        assert adding.result(60) == done
    waiting = [batch["payload"]["items"] for batch in noted.batches() if batch["status"] == "INIT"]
    assert waiting == [make({"A-1": "8.90"})]


def test_a_worker_that_is_busy_for_too_long_is_told_and_the_same_content_waits_for_none(
    noted: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY", timedelta(seconds=0.1))
    add(noted, make({"A-1": "9.90"}))
    with psycopg.connect(noted.dsn) as worker:
        worker.execute("select 1 from rowferry.batch_queue for update")
        assert add(noted, make({"A-1": "9.90"})) == ItemsEnqueued(skipped=1)
        with pytest.raises(UsageError, match=r"has been busy for .* with items whose content"):
            add(noted, make({"A-1": "8.90"}))
    assert noted.batch()["payload"]["items"] == make({"A-1": "9.90"})
