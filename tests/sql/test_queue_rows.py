"""What the plan says of a queue is stored with it; what an operator says stays until the plan says something else."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from psycopg import errors

from support.processes.processes import wait_for
from support.queue.lines import Lines

TAG = ("one", "tag")


def columns(lines: Lines, *names: str) -> dict[str, list[Any]]:
    return {name: [row[column] for column in names] for name, row in lines.rows("one").items()}


def test_a_plan_that_names_no_queue_needs_no_row(lines: Lines) -> None:
    lines.register("one")
    assert lines.rows("one") == {}


def test_what_the_plan_says_of_a_queue_is_stored_and_the_rest_is_the_default(lines: Lines) -> None:
    said = {"priority": -1, "weight": 2.5, "max_claimed": 4, "next": ["verify", "inspect"], "payload": {"deep": True}}
    lines.register("one", {"tag": said, "verify": {}})
    assert columns(lines, "priority", "weight", "max_claimed", "next", "payload", "paused_at") == {
        "tag": [-1, 2.5, 4, ["verify", "inspect"], {"deep": True}, None],
        "verify": [0, 1, None, [], {}, None],
    }


def test_what_an_operator_changed_outlives_an_enqueue_of_the_same_plan(lines: Lines) -> None:
    lines.register("one", {"tag": {"weight": 2}})
    lines.steer(TAG, "weight = 7, max_claimed = 3")
    lines.register("one", {"tag": {"weight": 2}, "verify": {"priority": 1}})
    assert columns(lines, "weight", "max_claimed", "priority") == {"tag": [7, 3, 0], "verify": [1, None, 1]}


def test_a_plan_that_says_something_else_of_a_queue_wins(lines: Lines) -> None:
    lines.register("one", {"tag": {"weight": 2}})
    lines.steer(TAG, "weight = 7, max_claimed = 3")
    lines.register("one", {"tag": {"weight": 4}})
    assert columns(lines, "weight", "max_claimed") == {"tag": [4, None]}


def test_a_queue_that_the_plan_no_longer_names_has_the_defaults_and_stays_paused(lines: Lines) -> None:
    lines.register("one", {"tag": {"weight": 2, "next": ["verify"]}})
    lines.steer(TAG, "paused_at = '2026-01-01'")
    lines.register("one")
    assert columns(lines, "weight", "next", "planned") == {"tag": [1, [], None]}
    assert lines.rows("one")["tag"]["paused_at"] is not None


def test_a_row_of_an_operators_own_is_left_alone(lines: Lines) -> None:
    migration_id = lines.register("one")
    lines.session.execute(
        "insert into rowferry.queue (migration_id, name, max_claimed) values (%s, 'tag', 2)", (migration_id,)
    )
    lines.register("one", {"verify": {}})
    assert columns(lines, "max_claimed") == {"tag": [2], "verify": [None]}


def test_an_enqueue_uses_up_no_ids_of_queues(lines: Lines) -> None:
    """They are numbers of places: there are two million."""
    for _ in range(5):
        lines.register("one", {"tag": {"weight": 2}})
    lines.register("one", {"tag": {"weight": 2}, "verify": {}})
    assert columns(lines, "id") == {"tag": [1], "verify": [2]}


def test_what_cannot_be_is_refused(lines: Lines, subtests: pytest.Subtests) -> None:
    wrong: dict[str, tuple[Any, ...]] = {
        "weight": (0, -1, "NaN", "Infinity"),
        "max_claimed": (0, 1024),
        "next": (["tag"], [None]),
        "payload": ([],),
    }
    for name, values in wrong.items():
        for value in values:
            with subtests.test(f"{name} {value}"), pytest.raises(errors.CheckViolation):
                lines.register("one", {"tag": {name: value}})
    with subtests.test("a name that no queue can have"), pytest.raises(errors.CheckViolation):
        lines.register("one", {"Tag it": {}})


def test_a_chain_that_leads_back_to_its_beginning_is_refused(lines: Lines) -> None:
    """In the plan, and by hand: its batches would be handed on for ever."""
    circle = {"tag": {"next": ["inspect"]}, "inspect": {"next": ["verify"]}, "verify": {"next": ["tag"]}}
    with pytest.raises(errors.InvalidParameterValue, match=r'queue "(tag|inspect|verify)" would hand on to itself'):
        lines.register("one", circle)
    lines.register("one", circle | {"verify": {}})
    lines.register("two", {"verify": {"next": ["tag"]}})
    with pytest.raises(errors.InvalidParameterValue):
        lines.steer(("one", "verify"), "next = '{inspect}'")
    lines.steer(TAG, "next = '{inspect, verify}'")
    lines.register("three", {"tag": {"next": ["inspect"]}, "verify": {"next": ["tag"]}})
    with pytest.raises(errors.InvalidParameterValue):
        lines.steer(("three", "verify"), "name = 'inspect'")


def test_two_operators_cannot_close_a_circle_together(lines: Lines, any_database: str) -> None:
    """Neither sees what the other has not committed yet."""
    lines.register("one", {"tag": {}, "verify": {}})
    with closing(Lines(any_database)) as other, ThreadPoolExecutor(1) as thread:
        with lines.session.transaction():
            lines.steer(TAG, "next = '{verify}'")
            late = thread.submit(other.steer, ("one", "verify"), "next = '{tag}'")
            waits = "select from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
            with closing(Lines(any_database)) as observer:
                pid = other.session.info.backend_pid
                wait_for(lambda: late.done() or observer.session.execute(waits, (pid,)).rowcount > 0)
        with pytest.raises(errors.InvalidParameterValue, match="would hand on to itself"):
            late.result(timeout=30)
