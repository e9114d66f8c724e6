"""A worker tells within seconds how far its batches are, and another takes a dead one's over."""

import pytest

from rowferry_worker.state import BatchProgress
from support.entries.migration import Migration
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog, writes_of


def read_in_hand(migration: Migration) -> int:
    (row,) = migration.execute("select coalesce(sum(in_hand), 0)::integer as entries from rowferry.progress")
    return row["entries"]


def test_entries_inside_an_open_batch_are_told_and_given_up_with_their_worker(
    migration: Migration, log: RequestLog
) -> None:
    migration.given(20, 20)
    with log.holding(writes_of(range(20, 21))) as held, migration.workers(1, "--until-empty") as (first,):
        eventually(lambda: len(held) > 0)
        eventually(lambda: read_in_hand(migration) == 19)
        assert migration.statuses() == {"INIT"}
        first.kill()
    migration.finish_after_kills()
    assert read_in_hand(migration) == 0
    assert sum(migration.counts().values()) == 20
    migration.audit()


@pytest.mark.parametrize(
    ("entries", "expected", "ended", "told"),
    [
        (10, [10], 4, 4),
        (10, [20], 5, 2),  # two objects an entry
        (10, [2], 1, 5),  # five entries an object
        (10, [10, 10], 10, 5),
        (10, [], 0, 0),
    ],
)
def test_each_object_stands_for_its_part_of_the_entries(
    entries: int, expected: list[int], ended: int, told: int
) -> None:
    progress = BatchProgress()
    progress.entries = entries
    for objects in expected:
        progress.expect(objects)
    for _ in range(ended):
        progress.note_end()
    assert progress.count() == told


def test_what_was_told_does_not_fall_when_more_objects_are_expected() -> None:
    progress = BatchProgress()
    progress.entries = 10
    progress.expect(10)
    for _ in range(10):
        progress.note_end()
    assert progress.count() == 10
    progress.expect(30)
    assert progress.count() == 10
