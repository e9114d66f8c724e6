"""What a part that is put back has of its batch, and what the batch keeps."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection, call, connect
from support.entries.entry_table import EntryTable

WHOLE = {"entries": "public.avatars.path", "first": "0", "last": "9", "on_conflict": "fail"}
LOWER, UPPER = {"first": "0", "last": "4"}, {"first": "5", "last": "9"}


@pytest.fixture
def worker(ten: EntryTable) -> Iterator[Connection]:
    with closing(connect("worker")) as connection:
        yield connection


def claim(worker: Connection) -> int:
    (batch,) = call(worker, "claim_batch", [1], ["migrate"])
    return batch["id"]


Patch = dict[str, Any]


def split(worker: Connection, batch_id: int, part: Patch, keep: Patch | None, crashes: int = 0) -> int:
    kept = None if keep is None else Jsonb(keep)
    (row,) = call(worker, "split_batch", batch_id, Jsonb(part), 5, crashes, kept)
    return row["split_batch"]


def test_a_part_has_its_batchs_line_and_attempts_and_the_crashes_that_it_is_given(
    ten: EntryTable, worker: Connection
) -> None:
    ten.execute("update rowferry.batch_queue set attempts = 2, crashes = 1, run_after = now() - interval '1 h'")
    part_id = split(worker, claim(worker), UPPER, LOWER, crashes=2)
    worker.commit()
    batch, part = ten.batches()
    assert part["id"] == part_id
    assert (part["migration_id"], part["queue_name"], part["status"]) == (batch["migration_id"], "migrate", "INIT")
    assert (part["entry_count"], part["max_attempts"], part["attempts"]) == (5, 3, 0)
    assert (part["crashes"], batch["crashes"]) == (2, 1)
    assert ten.execute("select run_after <= clock_timestamp() as is_due from rowferry.batch_queue where id = 2") == [
        {"is_due": True}
    ]


@pytest.mark.parametrize(("counted", "is_begun"), [("migrated", True), ("kept", True), ("changed", False)])
def test_a_part_of_a_batch_that_has_settled_entries_is_begun(
    ten: EntryTable, worker: Connection, counted: str, *, is_begun: bool
) -> None:
    """They may have been handed on: of what the part settles, only that is handed on anew."""
    ten.execute(f"update rowferry.batch_queue set {counted} = 1")
    split(worker, claim(worker), UPPER, LOWER)
    worker.commit()
    batch, part = ten.batches()
    assert part["payload"] == WHOLE | UPPER | ({"is_begun": True} if is_begun else {})
    assert "is_begun" not in batch["payload"]


SPLITS: dict[str, tuple[list[tuple[Patch, Patch | None]], list[Patch]]] = {
    "a batch that keeps all says what it said": ([(LOWER, None), (UPPER, None)], [{}, LOWER, UPPER]),
    # Entries behind each end may have been settled with it.
    "a batch that is cut again remembers its first end and its parts do not": (
        [({"first": "7", "last": "9"}, {"last": "6"}), ({"first": "3", "last": "6"}, {"last": "2"})],
        [{"last": "2", "last_before": "9"}, {"first": "7", "last": "9"}, {"first": "3", "last": "6"}],
    ),
    "a batch whose end stays remembers no other": (
        [({"only": ["1"]}, {"only": ["2"]})],
        [{"only": ["2"]}, {"only": ["1"]}],
    ),
}


@pytest.mark.parametrize(("splits", "payloads"), SPLITS.values(), ids=SPLITS)
def test_a_batch_and_its_parts_say_what_each_means(
    ten: EntryTable, worker: Connection, splits: list[tuple[Patch, Patch | None]], payloads: list[Patch]
) -> None:
    batch_id = claim(worker)
    for part, keep in splits:
        split(worker, batch_id, part, keep)
    worker.commit()
    assert [batch["payload"] for batch in ten.batches()] == [WHOLE | payload for payload in payloads]


def test_only_the_uploads_of_the_batch_go_on_with_its_part(ten: EntryTable, worker: Connection) -> None:
    ten.add_legacy(range(10, 20)).enqueue(10)
    for batch_id in (1, 2):
        ten.execute(
            "select rowferry.take_upload(%s, a.attempt_id, 'https://s3.test/new', %s, 'old', 'image/large.bin') "
            "from rowferry.begin_attempt(%s, 0, 'w') as a",
            (batch_id, f"avatar/{batch_id}.bin", batch_id),
        )
    part_id = split(worker, claim(worker), UPPER, LOWER)
    worker.commit()
    found = ten.execute("select key, batch_id from rowferry.upload order by key")
    assert [tuple(row.values()) for row in found] == [("avatar/1.bin", part_id), ("avatar/2.bin", 2)]
