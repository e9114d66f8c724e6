"""Each form of entries with killed workers, missing and foreign objects, and an application that goes on writing.

In the end the outcomes balance: what cannot move has the outcome that says why, and all else is where it belongs.
"""

import random
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from corpus.discourse.project import Discourse
from corpus.gitlab.project import GitLab
from corpus.project import Project, Row
from corpus.shop.project import Shop
from corpus.shrine.project import Shrine
from corpus.wordpress.project import WordPress
from corpus.world import Corpus, canonical
from support.processes.processes import wait_for
from support.processes.worker_process import WorkerProcess

FORMS: dict[str, type[Project]] = {
    "URLs": Discourse,
    "states and computed keys": GitLab,
    "ids of several columns": Shop,
    "documents": Shrine,
    "encoded URLs": WordPress,
}
UPLOADS = 24
SABOTAGED = 4
"""Uploads that lose an object, and as many with a foreign object in the place of theirs."""
BATCH_SIZE = 3
KILLS = 3
WORKERS = 2
PLAN = {"migration": {"max_attempts": 50}, "production": {"max_requests_per_second": 60}}
"""A batch that was killed by chance so often is no poison; slow enough for a kill to meet a batch."""


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_outcomes_balance_whatever_happens(form: str, make_corpus: Callable[..., Corpus]) -> None:
    made, chance = make_corpus(FORMS[form](), UPLOADS, PLAN), random.Random(form)
    missing, conflicts = sabotage(made, lose_object), sabotage(made, block_object)

    with made.auditor.watching(), made.application.writing():
        made.enqueue(BATCH_SIZE)
        kill_workers(made, chance)
    finish(made)

    made.check_balance()
    found = {(failure["outcome"], failure["entry_id"]) for failure in unsettled(made)}
    assert len({entry_id for outcome, entry_id in found if outcome == "missing"}) == len(missing), made.failures()
    assert len({entry_id for outcome, entry_id in found if outcome == "conflict"}) == len(conflicts), made.failures()
    assert {outcome for outcome, _ in found} == {"missing", "conflict"}, made.failures()
    expect_rows(made, left={made.project.id_of(row.table, row.columns) for row in missing + conflicts})
    made.auditor.check_all()
    assert not made.auditor.violations
    assert made.legacy.listing().keys() == made.application.bodies.keys()


def sabotage(world: Corpus, act: Callable[[Corpus, Row, str], None]) -> list[Row]:
    """Do something to one object of some rows, which the application leaves alone from now on."""
    done: list[Row] = []
    for number in list(world.application.uploads):
        rows = [world.application.rows[row_id] for row_id in world.application.uploads[number]]
        chosen = next(((row, role) for row in rows for role in row.objects if is_alone(world, row, role)), None)
        if chosen and len(done) < SABOTAGED:
            del world.application.uploads[number]
            act(world, *chosen)
            done.append(chosen[0])
    assert len(done) == SABOTAGED
    return done


def is_alone(world: Corpus, row: Row, role: str) -> bool:
    """Return whether no other row names this object."""
    key = row.objects[role]
    return not any(key in other.objects.values() for other in world.application.rows.values() if other is not row)


def lose_object(world: Corpus, row: Row, role: str) -> None:
    """Delete an object behind the application's back."""
    world.legacy.delete(row.objects[role])
    del world.application.bodies[row.objects[role]]
    world.auditor.lost.add(f"{world.project.id_of(row.table, row.columns)} {role}")


def block_object(world: Corpus, row: Row, role: str) -> None:
    """Write a foreign object where one is to go."""
    place = world.project.places(row.table, world.project.moved(row.table, row.columns))[role]
    world.production.put(place.key, b"a foreign object")


def kill_workers(world: Corpus, chance: random.Random) -> None:
    """Kill workers that hold a batch, one after the other, and replace them at once; then stop all of them."""
    with ExitStack() as until:
        workers: list[WorkerProcess] = []
        for _ in range(WORKERS):
            workers += until.enter_context(world.workers(1, "--until-empty"))
        for _ in range(KILLS):
            wait_for(lambda: claimed(world) or "INIT" not in world.statuses())
            if "INIT" not in world.statuses():
                world.enqueue(BATCH_SIZE)
            victim = chance.randrange(len(workers))
            workers[victim].kill()
            (workers[victim],) = until.enter_context(world.workers(1, "--until-empty"))
        wait_for(lambda: "INIT" not in world.statuses() or all(each.process.poll() is not None for each in workers))


def claimed(world: Corpus) -> bool:
    return bool(world.execute("select 1 as one from rowferry.claimed_batches limit 1"))


def finish(world: Corpus) -> None:
    """Make passes until no entry is left but in batches in ERROR, and try these once more."""
    world.execute("select rowferry.requeue(p_error_like => '%')")
    for _ in range(20):
        world.work_again()
        if "INIT" not in world.statuses() and not sum(done.entries for done in world.enqueue(BATCH_SIZE)):
            return
    raise AssertionError(f"it does not come to an end: {world.batches()}")


def unsettled(world: Corpus) -> list[dict[str, object]]:
    return [failure for failure in world.failures() if failure["outcome"] not in {"changed", "deleted"}]


def expect_rows(world: Corpus, *, left: set[str]) -> None:
    """Each row has moved but those that are left, and holds all else that the application has written.

    Of a document that two [[entries]] name, one may have moved and the other not: the auditor reads both.
    """
    found = {world.project.id_of(table, columns): columns for table, columns in world.find_rows()}
    assert found.keys() == world.application.rows.keys()
    for row_id, row in world.application.rows.items():
        moved = canonical(world.project.moved(row.table, row.columns))
        assert (canonical(found[row_id]) == moved) is (row_id not in left), row_id
