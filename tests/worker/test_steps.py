"""Where the time of a batch goes: by step, each second once."""

import socket
from contextlib import suppress

import pytest

from rowferry_worker.monitoring.steps import StepClock
from rowferry_worker.state import BatchProgress
from support.entries.migration import Migration
from support.processes.clock import Clock
from support.processes.processes import wait_for
from support.processes.scrape import has_said_all, scrape, served_port, sum_of, values_by
from support.processes.worker_process import eventually
from support.s3.request_log import RequestLog, writes_of


def test_a_step_inside_another_counts_once_as_itself_and_one_that_fails_is_counted() -> None:
    clock = Clock()
    steps = StepClock(clock.monotonic)
    with steps.step("perform"):
        clock.now += 1
        with steps.step("update"):
            clock.now += 2
            with suppress(ValueError), steps.step("held"):
                clock.now += 4
                raise ValueError
        clock.now += 8
    clock.now += 16
    with steps.step("commit"):
        clock.now += 32
    assert steps.seconds == {"perform": 9, "update": 2, "held": 4, "commit": 32}


def test_the_steps_of_a_batch_add_up_to_what_it_took(migration: Migration) -> None:
    migration.given(30, 10)
    with migration.workers(1, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: has_said_all(port, batches=3))
        wait_for(lambda: sum_of(scrape(port), "rowferry_step_seconds_total", step="commit") > 0)
        samples = scrape(port)
    steps = values_by(samples, "rowferry_step_seconds_total", "step")
    assert {"claim", "read", "perform", "update", "commit"} <= set(steps)
    assert values_by(samples, "rowferry_step_seconds_total", "queue").keys() == {"migrate"}
    inside = sum(steps[step] for step in ("read", "perform", "update", "commit"))
    assert 0 < inside <= sum_of(samples, "rowferry_batch_seconds_sum")


@pytest.mark.parametrize(
    ("environment", "name"), [({}, socket.gethostname()), ({"ROWFERRY_HOST_NAME": "node-7"}, "node-7")]
)
def test_every_metric_and_the_database_name_a_host_by_the_system_or_as_its_worker_is_told(
    migration: Migration, environment: dict[str, str], name: str
) -> None:
    """In a pod the system's name is the pod's; whoever looks for a sick node wants the node's."""
    for options in ((), ("--processes", "2")):
        with migration.workers(1, "--metrics-port", "0", *options, **environment) as (worker,):
            port = served_port(worker)
            wait_for(lambda port=port: sum_of(scrape(port), "rowferry_build_info") > 0)
            assert {sample.labels["host"] for sample in scrape(port)} == {name}
            wait_for(lambda: len(live_hosts(migration)) == 1)
        assert live_hosts(migration) == [{"host": name, "named": name}]


def live_hosts(migration: Migration) -> list[dict[str, str]]:
    return migration.execute("select distinct host, split_part(id, ':', 1) as named from rowferry.worker")


def test_waiting_for_a_limit_of_the_plan_is_held_and_not_perform(migration: Migration) -> None:
    migration.plan["database"] = {"max_rows_per_second": 10}
    migration.given(20, 5)
    with migration.workers(1, "--metrics-port", "0") as (worker,):
        port = served_port(worker)
        migration.wait_until_done()
        wait_for(lambda: sum_of(scrape(port), "rowferry_step_seconds_total", step="held") > 0.1)
        assert sum_of(scrape(port), "rowferry_limit_wait_seconds_total", limit="max_rows_per_second") > 0.1


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
    progress.expect(300)
    assert progress.count() == told, "nor does it fall when more objects are expected"
