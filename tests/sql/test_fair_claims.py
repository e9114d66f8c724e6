"""Claims are shared out by weight among the queues of all migrations; priority, pauses and limits hold."""

from collections import Counter

import psycopg
import pytest

from rowferry.db.connection import Connection
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.waiting_lines import WaitingLines
from support.postgres.plans import explained
from support.processes.processes import wait_for
from support.queue.lines import Line, Lines, claim_and_finish, finish, sessions

pytestmark = pytest.mark.versions

LARGE, SMALL = ("large", "migrate"), ("small", "migrate")
WITHIN = 0.05
"""How far a share of the claims may be from its weight's."""


def share(claims: list[Line], line: Line) -> float:
    return claims.count(line) / len(claims)


def tag(lines: Lines, count: int, **settings: int) -> None:
    """Put so many batches in the queue `tag` of the migration `one`."""
    lines.register("one", {"tag": settings})
    lines.add(("one", "tag"), count)


def test_a_small_migration_that_comes_later_has_its_share_of_the_claims(lines: Lines) -> None:
    """As long as it has batches: 10 beside 300 are claimed among the first 20 or so."""
    lines.register("large")
    lines.add(LARGE, 300)
    lines.register("small")
    lines.add(SMALL, 10)
    claims = claim_and_finish(lines, ["migrate"], 310)
    last = max(place for place, line in enumerate(claims) if line == SMALL)
    assert abs(10 - (last + 1) / 2) <= 2, "to within a batch or two"
    assert Counter(claims) == {LARGE: 300, SMALL: 10}


def test_queues_of_one_migration_and_another_share_by_weight(lines: Lines) -> None:
    weights = {("one", "tag"): 5.0, ("one", "verify"): 1.0, ("two", "tag"): 2.0}
    lines.register("one", {"tag": {"weight": 5}})  # `verify` has no row, so the default
    lines.register("two", {"tag": {"weight": 2}})
    for line in weights:
        lines.add(line, 300)
    claims = claim_and_finish(lines, ["tag", "verify"], 240)
    shares = {line: share(claims, line) for line in weights}
    assert shares == pytest.approx({line: weight / 8 for line, weight in weights.items()}, abs=WITHIN)


def test_sessions_that_keep_their_claims_share_as_well(lines: Lines) -> None:
    """Fifty claims that are held at once: as many of the small migration as of the one that was there before."""
    lines.register("large")
    lines.add(LARGE, 300)
    lines.register("small")
    lines.add(SMALL, 100)
    names, known = lines.names(), WaitingLines()
    with sessions(50) as workers:
        batches = [claim_batch(worker, ["migrate"], lines=known) for worker in workers]
        held = Counter(names[batch.migration_id] for batch in batches if batch is not None)
        assert len({batch.id for batch in batches if batch is not None}) == 50
    assert held["small"] / 50 == pytest.approx(0.5, abs=WITHIN)


def test_where_the_line_in_turn_has_none_to_give_the_others_share_by_weight(lines: Lines) -> None:
    """It is not the oldest that gets what is left: the line in front may be at its limit for days."""
    lines.register("full", {"migrate": {"max_claimed": 1, "weight": 100}})
    lines.add(("full", "migrate"), 10)
    for name, weight in (("large", 1), ("small", 3)):
        lines.register(name, {"migrate": {"weight": weight}})
        lines.add((name, "migrate"), 300)
    with sessions(1) as (holder,):
        while (batch := claim_batch(holder, ["migrate"])) and lines.names()[batch.migration_id] != "full":
            finish(holder, batch)
        claims = claim_and_finish(lines, ["migrate"], 300)
    assert set(claims) == {LARGE, SMALL}
    assert share(claims, SMALL) == pytest.approx(0.75, abs=0.15), "a lottery here: six standard deviations"


def test_a_queue_of_higher_priority_goes_first_until_nothing_of_it_is_due(lines: Lines) -> None:
    lines.register("large", {"migrate": {"weight": 1000}})
    lines.add(LARGE, 10)
    lines.register("small", {"migrate": {"priority": 5}, "tag": {"priority": -5, "weight": 1000}})
    lines.add(SMALL, 10)
    lines.add(("small", "tag"), 10)
    assert claim_and_finish(lines, ["migrate", "tag"], 30) == [SMALL] * 10 + [LARGE] * 10 + [("small", "tag")] * 10


def test_a_paused_queue_is_left_out_and_the_others_of_its_migration_go_on(lines: Lines) -> None:
    lines.register("one", {"tag": {}})
    for queue in ("tag", "verify"):
        lines.add(("one", queue), 10)
    lines.steer(("one", "tag"), "paused_at = now()")
    assert set(claim_and_finish(lines, ["tag", "verify"], 10)) == {("one", "verify")}
    with sessions(1) as (worker,):
        assert claim_batch(worker, ["tag", "verify"]) is None
        lines.steer(("one", "tag"), "paused_at = null")
        worker.rollback()
        assert claim_batch(worker, ["tag", "verify"]) is not None, "at the next claim"


def claimed(connection: Connection, queue: str = "tag") -> int | None:
    batch = claim_batch(connection, [queue])
    return batch and batch.id


def test_no_more_than_max_claimed_are_claimed_at_once(lines: Lines) -> None:
    tag(lines, 10, max_claimed=2)
    with sessions(4) as (first, second, third, fourth):
        assert (claimed(first), claimed(second)) == (1, 2)
        assert claimed(third) is None
        assert lines.count_places() == {1: 2}
        first.commit()
        assert claimed(fourth) == 1, "the place is free with the claim"
        second.close()
        wait_for(lambda: claimed(third) == 2)


def test_a_limit_is_its_queues_alone(lines: Lines) -> None:
    for name in ("one", "two"):
        lines.register(name, {"tag": {"max_claimed": 1}})
        lines.add((name, "tag"), 5)
        lines.add((name, "verify"), 5)
    with sessions(6) as workers:
        found = Counter[Line | None]()
        for worker, queues in zip(workers, [["tag"]] * 3 + [["tag", "verify"]] * 3, strict=True):
            batch = claim_batch(worker, queues)
            found[(lines.names()[batch.migration_id], batch.queue_name) if batch else None] += 1
        verified = found.pop(("one", "verify"), 0) + found.pop(("two", "verify"), 0)
        assert found == {("one", "tag"): 1, ("two", "tag"): 1, None: 1}, "one of each migration's, then none"
        assert verified == 3, "a queue without a limit goes on beside them"


def test_a_transaction_that_claims_twice_has_one_batch_and_one_place(lines: Lines) -> None:
    tag(lines, 10, max_claimed=2)
    with sessions(3) as (worker, other, third):
        assert [claimed(worker), claimed(worker), claimed(worker)] == [1, 1, 1]
        assert lines.count_places() == {1: 1}
        assert [claimed(other), claimed(third)] == [2, None]


def test_a_place_without_a_batch_is_given_back(lines: Lines, any_database: str) -> None:
    tag(lines, 1, max_claimed=5)
    with sessions(2) as (worker, other), psycopg.connect(any_database) as operator:
        operator.execute("select from rowferry.batch_queue for update")
        assert claimed(worker) is None
        assert lines.count_places() == {}
        assert claimed(worker) is None
        operator.rollback()
        assert claimed(worker) == 1, "in the transaction that had none before"
        assert lines.count_places() == {1: 1}
        assert claimed(other) is None
        assert lines.count_places() == {1: 1}


def test_a_claim_that_is_rolled_back_to_a_savepoint_gives_its_place_back(lines: Lines) -> None:
    tag(lines, 2, max_claimed=1)
    with sessions(2) as (worker, other):
        worker.execute("savepoint before")
        assert claimed(worker) == 1
        worker.execute("rollback to savepoint before")
        assert claimed(other) == 1
        other.rollback()
        assert claimed(worker) == 1


def test_a_lowered_limit_holds_for_new_claims(lines: Lines) -> None:
    tag(lines, 20, max_claimed=8)
    with sessions(9) as workers:
        for worker in workers[:8]:
            assert claimed(worker) is not None
        lines.steer(("one", "tag"), "max_claimed = 1")
        assert claimed(workers[8]) is None
        for worker in workers[:8]:
            worker.commit()
        assert claimed(workers[8]) is not None
        assert claimed(workers[0]) is None
        lines.steer(("one", "tag"), "max_claimed = null")
        assert claimed(workers[0]) is not None


def test_thirty_queues_cost_a_claim_what_one_does(lines: Lines) -> None:
    queues, known = [f"q{number}" for number in range(30)], WaitingLines()
    lines.register("one", {queue: {"max_claimed": 3} for queue in queues})
    for queue in queues:
        lines.add(("one", queue), 300)
    lines.session.execute("analyze rowferry.batch_queue, rowferry.queue, rowferry.migration")
    with sessions(1) as (worker,), explained(worker) as plans:
        assert claim_batch(worker, queues, lines=known) is not None
        plans.take()
        assert claim_batch(worker, queues, lines=known) is not None
        found = plans.take_inner()
    locking = [plan for plan in found if "skip locked" in plan.text]
    assert [(plan.indexes, plan.most_rows()) for plan in locking] == [({"batch_queue_due_idx"}, 1)]
    assert [plan.scanned() - {"migration"} for plan in found] == [set() for _ in found]
    assert sum(plan.touched for plan in found) <= 60
