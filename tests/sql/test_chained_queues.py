"""A worker that ends on empty queues waits for those that lead to its own, and says which of them are paused."""

from contextlib import closing

import pytest

from rowferry.db.connection import Connection, connect
from rowferry.errors import WorkLeft
from rowferry_worker.batch.claim import claim_batch, is_finished, is_work_left
from support.queue.lines import Lines

CHAIN = {"load": {"next": ["tag"]}, "tag": {"next": ["inspect", "verify"]}}


@pytest.fixture
def lines(lines: Lines) -> Lines:
    """The lines of a migration with a chain."""
    lines.register("one", CHAIN)
    return lines


def left(worker: Connection, *queues: str) -> bool:
    found = is_work_left(worker, list(queues))
    worker.rollback()
    return found


def words(worker: Connection, *queues: str) -> str:
    with pytest.raises(WorkLeft) as caught:
        is_finished(worker, list(queues), None, {})
    worker.rollback()
    return str(caught.value)


def test_batches_of_the_queues_before_count_and_those_of_the_queues_behind_do_not(
    worker: Connection, lines: Lines
) -> None:
    lines.add(("one", "tag"), 1)
    assert [queue for queue in ("load", "tag", "inspect", "verify") if left(worker, queue)] == [
        "tag", "inspect", "verify"
    ]  # fmt: skip
    assert not left(worker, "migrate")


def test_what_leads_to_a_queue_in_one_migration_leads_nowhere_in_another(worker: Connection, lines: Lines) -> None:
    """Here `load` leads to `tag` in both, and `tag` to `verify` in the first alone."""
    lines.register("two", {"load": {"next": ["tag"]}, "tag": {"next": ["inspect"]}, "verify": {}})
    lines.add(("two", "load"), 1)
    assert [queue for queue in ("tag", "inspect", "verify") if left(worker, queue)] == ["tag", "inspect"]


def test_a_queue_that_is_paused_in_one_migration_runs_in_another(worker: Connection, lines: Lines) -> None:
    lines.register("two", CHAIN)
    lines.add(("one", "tag"), 2)
    lines.steer(("one", "tag"), "paused_at = now()")
    assert not left(worker, "tag"), "another migration's queue does not resume it"
    assert words(worker, "tag") == (
        "2 batches of tag of one are left and paused: run `rowferry resume --queue tag --migration one`."
    )
    lines.add(("two", "tag"), 1)
    assert left(worker, "tag"), "nor is it paused there"
    assert not is_finished(worker, ["tag"], None, {})


def test_batches_of_a_queue_of_which_no_plan_says_anything_are_waited_for(worker: Connection, lines: Lines) -> None:
    """It has no row in rowferry.queue, so nothing can be paused there."""
    lines.add(("one", "echo"), 1)
    assert "echo" not in lines.rows("one")
    assert left(worker, "echo")
    lines.session.execute("update rowferry.batch_queue set run_after = 'infinity'")
    assert words(worker, "echo") == "1 batch of echo of one is left, put off for ever by run_after."


def test_a_claimed_batch_at_the_beginning_of_a_chain_keeps_the_last_worker_waiting(
    worker: Connection, lines: Lines
) -> None:
    lines.add(("one", "load"), 1)
    with closing(connect("loader")) as loader:
        assert claim_batch(loader, ["load"]) is not None
        assert not is_finished(worker, ["verify"], None, {})


def test_a_circle_made_by_hand_ends_the_search(worker: Connection, lines: Lines) -> None:
    lines.session.execute("alter table rowferry.queue disable trigger queue_next_guard")
    lines.steer(("one", "tag"), "next = '{load}'")
    assert not left(worker, "tag")


def test_batches_of_what_is_paused_are_not_waited_for_and_it_is_named(worker: Connection, lines: Lines) -> None:
    lines.add(("one", "tag"), 3)
    lines.steer(("one", "tag"), "paused_at = now()")
    assert not left(worker, "verify")
    assert words(worker, "verify") == (
        "3 batches of tag of one are left and paused: run `rowferry resume --queue tag --migration one`."
    )
    lines.add(("one", "load"), 1)
    lines.steer(("one", "load"), "paused_at = now()")
    assert words(worker, "verify") == (
        "1 batch of load of one is left and paused: run `rowferry resume --queue load --migration one`. "
        "3 batches of tag of one are left and paused: run `rowferry resume --queue tag --migration one`."
    )
    lines.session.execute("update rowferry.migration set paused_at = now()")
    assert words(worker, "tag").endswith(
        "3 batches of tag of one are left and paused: run `rowferry resume --migration one`."
    )
