"""What tells a fault of one batch from one of its migration: whether another batch has succeeded since it came."""

import pytest

from support.entries.entry_table import EntryTable

FAULT = "relation gone"
FAILED = """
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at, verdict, finished_at, error)
select id, %s, 1, 'a worker', created_at, 'RETRY', created_at + interval '10 s', %s from rowferry.batch_queue
where id = %s
"""
SUCCEEDED = """
update rowferry.batch_queue
set status = 'DONE', migrated = entry_count, started_at = created_at,
    finished_at = created_at + make_interval(secs => %s)
where id = %s
"""


@pytest.fixture
def batches(table: EntryTable) -> EntryTable:
    """Three batches, of which the first one met the fault after 10 s."""
    table.add_legacy(range(1, 4)).enqueue(1)
    table.execute(FAILED, (0, FAULT, 1))
    return table


@pytest.mark.parametrize(
    ("after_seconds", "met", "is_own"),
    [
        pytest.param(11, (1, 0, FAULT), True, id="another-succeeded-since"),
        pytest.param(9, (1, 0, FAULT), False, id="another-succeeded-before"),
        pytest.param(None, (1, 0, FAULT), False, id="none-succeeded"),
        pytest.param(11, (1, 1, FAULT), False, id="met-before-it-was-requeued"),
        pytest.param(11, (1, 0, "another fault"), False, id="met-for-the-first-time"),
        pytest.param(11, (3, 0, FAULT), False, id="met-by-another-batch"),
    ],
)
def test_a_fault_is_a_batchs_own_where_another_has_succeeded_since(
    batches: EntryTable, after_seconds: int | None, met: tuple[int, int, str], is_own: bool
) -> None:
    if after_seconds is not None:
        batches.execute(SUCCEEDED, (after_seconds, 2))
    found = batches.execute("select * from rowferry.judge_fault(%s, %s, %s, interval '0')", met)
    waiting = 3 if after_seconds is None else 2
    assert found == [{"is_own": is_own, "waiting": waiting, "others_run": False}]


RUNNING = """
insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues, stopped_at, last_seen_at)
values ('live', 'h', 1, '0', 1, 1, '{migrate}', null, now()), ('stopped', 'h', 2, '0', 1, 1, '{migrate}', now(), now()),
    ('silent', 'h', 3, '0', 1, 1, '{migrate}', null, now() - interval '1 minute')
"""
BEGUN = """
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at)
select id, 0, 1, %s, now() - make_interval(secs => %s) from rowferry.batch_queue where id = %s
"""


@pytest.mark.parametrize(
    ("worker", "for_seconds", "begun", "others_run"),
    [
        pytest.param("live", 11, 2, True, id="before-the-pause-was-due"),
        pytest.param("live", 9, 2, False, id="since"),
        pytest.param("live", 11, 1, False, id="its-own"),
        pytest.param("stopped", 11, 2, False, id="of-a-worker-that-stopped"),
        pytest.param("silent", 11, 2, False, id="of-a-worker-that-is-silent"),
        pytest.param("unknown", 11, 2, False, id="of-a-worker-that-is-gone"),
    ],
)
def test_others_are_on_their_way_where_they_began_before_the_pause_was_due(
    batches: EntryTable, worker: str, for_seconds: int, begun: int, others_run: bool
) -> None:
    """The pause has been due for ten seconds: a side that fails for all is not tried for ever."""
    batches.execute(RUNNING)
    batches.execute(BEGUN, (worker, for_seconds, begun))
    (found,) = batches.execute("select * from rowferry.judge_fault(1, 0, %s, interval '10 s')", (FAULT,))
    assert found["others_run"] is others_run
