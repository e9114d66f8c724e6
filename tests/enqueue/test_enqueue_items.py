"""`rowferry enqueue --queue` and `--items`: entries of any queue, and items of a file, in bounded memory."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import psycopg
import pytest
from psycopg import errors

from rowferry.db.connection import connect
from rowferry.errors import UsageError
from rowferry.queues import find_queue
from rowferry_enqueue import items as module
from rowferry_enqueue.items import ItemsEnqueued, enqueue_items, read_items
from support.entries.entry_table import EntryTable
from support.postgres.roles import grant, log_in, new_roles
from support.processes.cli import Run, refused
from support.queue.plug_in import notes
from support.queue.workers_here import run_here

WORKERS_HERE = True
QUEUE = "items_alone"


def write_items(folder: Path, ids: Iterable[object], **more: object) -> str:
    path = folder / "things.jsonl"
    path.write_text("".join(json.dumps({"id": number, **more}) + "\n" for number in ids))
    return str(path)


def enqueue_file(run: Run, path: str = "things.jsonl", *more: str, queue: str = QUEUE) -> CompletedProcess[str]:
    return run("enqueue", "--queue", queue, "--items", path, "--yes", *more)


def work(run_rowferry: Run) -> int:
    """Work on the queue to its end and return the exit status."""
    return run_rowferry("run", QUEUE, "--processes", "1", "--yes").returncode


def add(table: EntryTable, items: Iterable[dict[str, Any]], **more: Any) -> ItemsEnqueued:
    with connect("enqueue", autocommit=True) as connection:
        return enqueue_items(connection, table.read_plan(), find_queue(QUEUE), items, **more)


def item_ids(table: EntryTable) -> list[list[str]]:
    return [[item["id"] for item in batch["payload"]["items"]] for batch in table.batches()]


def test_items_become_batches_and_are_worked_on(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    done = enqueue_file(run_rowferry, write_items(tmp_path, range(25), value="good"), "-b", "10")
    assert done.stdout == "Enqueued 25 items in 3 batches. Next: run `rowferry worker` on any host.\n"
    assert [len(ids) for ids in item_ids(noted)] == [10, 10, 5]
    assert {batch["max_attempts"] for batch in noted.batches()} == {5}
    assert work(run_rowferry) == 0
    assert notes(noted) == {QUEUE: 25}
    assert {row["value"] for row in noted.execute("select value from public.notes")} == {"good"}


def test_an_item_that_failed_is_named_once(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    enqueue_file(run_rowferry, write_items(tmp_path, [7], value="bad"))
    noted.execute("update rowferry.batch_queue set max_attempts = 1")
    assert work(run_rowferry) == 1
    first, second, *_ = run_rowferry("errors", "--entries").stdout.splitlines()
    assert (first.rstrip(), second.strip().partition("  (")[0]) == ("items 7", "failed: the value is bad")


def test_items_follow_the_chain(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    assert enqueue_file(run_rowferry, write_items(tmp_path, range(5)), queue="note").returncode == 0
    assert run_rowferry("worker", "--until-empty", "--processes", "1").returncode == 0
    assert notes(noted) == {"note": 5, "echo": 5}


def test_items_come_from_standard_input(noted: EntryTable, tmp_path: Path) -> None:
    lines = "".join(f'{{"id": "{number}"}}\n' for number in range(7))
    for more, status in (([], 2), (["--yes"], 0)):
        done = run_here(tmp_path, "enqueue", "--queue", QUEUE, "--items", "-", *more, typed=lines)
        assert done.returncode == status, done.stderr
    assert item_ids(noted) == [[str(number) for number in range(7)]]


def test_items_that_wait_already_are_not_added_again(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    """So a file may be enqueued again after an error; items that are done are worked on again, which a queue stands."""
    enqueue_file(run_rowferry, write_items(tmp_path, range(6)))
    done = enqueue_file(run_rowferry, write_items(tmp_path, range(8)))
    assert done.stdout.startswith("Enqueued 2 items in 1 batch; 6 items wait there already.")
    noted.execute("update rowferry.batch_queue set status = 'ERROR' where entry_count = 6")
    assert add(noted, [{"id": "3"}]).skipped == 1
    assert run_rowferry("requeue", "--all").returncode == 0
    assert work(run_rowferry) == 0
    assert notes(noted) == {QUEUE: 8}
    assert add(noted, [{"id": "3"}]).items == 1
    done = enqueue_file(run_rowferry, queue="echo")
    assert done.stdout.startswith("Enqueued 8 items in 1 batch.")


WRONG = {
    "[1]": "is no JSON object",
    '{"id": 1': "is no JSON object",
    '{"key": "a"}': "has no `id`",
    '{"id": ""}': "has no `id`",
    '{"id": true}': "has no `id`",
    '{"id": "a", "b": "\\u0000"}': "holds a NUL",
}


def test_a_wrong_item_is_named_by_its_line(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for line, fault in WRONG.items():
        (tmp_path / "things.jsonl").write_text(f'{{"id": "0"}}\n{line}\n')
        with subtests.test(line):
            assert f"Line 2 of things.jsonl {fault}" in refused(enqueue_file(run_rowferry))
            assert noted.batches() == []


def test_what_was_added_before_an_error_is_told(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS", 4)
    path = tmp_path / "things.jsonl"
    write_items(tmp_path, map(str, range(9)))
    path.write_text(path.read_text() + "no item\n")
    done = enqueue_file(run_rowferry)
    assert (done.returncode, done.stdout) == (2, "Enqueued 8 items before that.\n")
    write_items(tmp_path, map(str, range(9)))
    done = enqueue_file(run_rowferry)
    assert done.stdout.startswith("Enqueued 1 item in 1 batch; 8 items wait there already.")
    assert sorted(one for ids in item_ids(noted) for one in ids) == [str(number) for number in range(9)]


def test_items_are_read_as_they_are_added_and_large_ones_in_groups_of_few(
    noted: EntryTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than a group of them is in memory, and each group is committed before the next is read."""
    monkeypatch.setattr(module, "MAX_ITEMS", 10)
    seen: list[int] = []

    def make() -> Iterator[dict[str, Any]]:
        for number in range(35):
            if number % 10 == 0:
                seen.append(sum(batch["entry_count"] for batch in noted.batches()))
            yield {"id": str(number)}

    assert add(noted, make()) == ItemsEnqueued(batches=4, items=35)
    assert seen == [0, 10, 20, 30]
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    assert add(noted, ({"id": f"large {number}", "value": "x" * 400} for number in range(6))).batches == 2
    with pytest.raises(UsageError, match=r"Line 1 of here is longer than 1,000 bytes"):
        list(read_items([b'{"id": "%s"}' % (b"1" * 1000)], "here"))


def test_a_queue_that_takes_no_items_is_refused(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    path = write_items(tmp_path, range(3))
    done = enqueue_file(run_rowferry, path, queue="verify")
    words = "rowferry: The queue verify takes no items: see `rowferry queues` for others.\n"
    assert (done.returncode, done.stderr) == (2, words)
    with (tmp_path / "rowferry.toml").open("a") as plan:
        plan.write('[queue.echo]\nthen = ["verify"]\n')
    done = enqueue_file(run_rowferry, path, queue="note")
    assert "The queue verify, which gets what note has settled, takes no items" in done.stderr
    assert noted.batches() == []


def test_a_plan_of_items_alone_needs_no_table(noted: EntryTable, run_rowferry: Run, tmp_path: Path) -> None:
    del noted.plan["entries"]
    (tmp_path / "rowferry.toml").write_text('[migration]\nname = "things"\nmax_attempts = 2\n[queue.items_alone]\n')
    path = write_items(tmp_path, range(3))
    assert enqueue_file(run_rowferry, path, "--dry-run").stdout.startswith("3 items to")
    assert enqueue_file(run_rowferry, path).returncode == 0
    assert noted.batch()["max_attempts"] == 2
    assert work(run_rowferry) == 0
    assert notes(noted) == {QUEUE: 3}


def test_entries_of_any_queue_are_enqueued(noted: EntryTable, run_rowferry: Run) -> None:
    done = run_rowferry("enqueue", "--queue", "echo", "-b", "20", "--yes")
    assert "Enqueued 30 entries in 2 batches" in done.stdout
    assert {batch["queue_name"] for batch in noted.batches()} == {"echo"}
    assert run_rowferry("enqueue", "--queue", "echo", "--yes").stdout.endswith("Nothing to enqueue.\n")
    done = run_rowferry("enqueue", "--queue", "echo", "--on-conflict", "keep")
    assert (done.returncode, "--on-conflict means nothing to the queue echo" in done.stderr) == (2, True)


@pytest.mark.versions
def test_an_application_enqueues_items_in_its_own_transaction(noted: EntryTable, run_rowferry: Run) -> None:
    run_rowferry("run", "note", "--processes", "0", "--yes")
    noted.execute("delete from rowferry.batch_queue")
    call = "select * from rowferry.enqueue_items('avatars', 'note', %s, 2)"
    with new_roles(noted.dsn) as roles:
        grant(noted, roles)
        with psycopg.connect(log_in(noted, roles["enqueuer"])) as connection:
            found = connection.execute(call, ('[{"id": "a"}, {"id": "b", "value": "c"}, {"id": "d"}]',)).fetchone()
            assert found == (2, 3)
            assert noted.batches() == []
    first, second = noted.batches()
    assert first["payload"] == {
        "entries": "items",
        "items": [{"id": "a"}, {"id": "b", "value": "c"}],
        "unsettled": None,
    }
    assert (first["entry_count"], second["entry_count"], second["queue_name"]) == (2, 1, "note")


REFUSED = (
    ("nobody", "[]", 'there is no migration "nobody"'),
    ("avatars", "{}", "items are an array"),
    ("avatars", None, "items are an array"),
    ("avatars", '[{"id": "a"}, {"id": 7}]', "item 2 of them has no"),
    ("avatars", '[{"id": "a"}, 7]', "item 2 of them has no"),
    ("avatars", '[{"id": ""}]', "item 1 of them has no"),
    ("avatars", '[{"id": "a"}, {"id": "a"}]', 'the id "a" is that of several items'),
)


def test_sql_refuses_what_is_no_item(table: EntryTable, subtests: pytest.Subtests) -> None:
    table.enqueue()
    for migration, items, fault in REFUSED:
        with subtests.test(f"{migration} {items}"), pytest.raises(errors.InvalidParameterValue, match=fault):
            table.execute("select * from rowferry.enqueue_items(%s, 'note', %s)", (migration, items))
