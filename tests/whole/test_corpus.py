"""Real applications' tables and objects are migrated while the application goes on writing; see tests/corpus."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from corpus.active_storage.project import ActiveStorage
from corpus.discourse.project import Discourse
from corpus.gitlab.project import GitLab
from corpus.mastodon.project import Mastodon
from corpus.nextcloud.project import Nextcloud
from corpus.project import Project
from corpus.shop.project import Shop
from corpus.shrine.project import Shrine
from corpus.wagtail.project import Wagtail
from corpus.world import Corpus
from corpus.zulip.project import Zulip
from rowferry.batch import Outcome
from rowferry_enqueue.enqueue import Within
from rowferry_worker.batch import verdict
from support.processes.cli import Done

PROJECTS: dict[str, type[Project]] = {
    project.name: project
    for project in (ActiveStorage, Discourse, GitLab, Mastodon, Nextcloud, Shop, Shrine, Wagtail, Zulip)
}

UPLOADS = 6
BATCH_SIZE = 5
ACTIONS = 8
MOST_PASSES = 200


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "retry_delay", lambda _attempt: timedelta(0))


@pytest.mark.by_day("discourse", "shop")
@pytest.mark.parametrize("name", PROJECTS)
def test_an_application_is_migrated_while_it_goes_on(name: str, make_corpus: Callable[..., Corpus]) -> None:
    world = make_corpus(PROJECTS[name](), UPLOADS)
    must_pass(world.run("check"))
    world.expect_rows(moved=False)
    assert not world.production.listing()

    migrate_while_writing(world)
    switch(world)
    world.expect_rows(moved=True)
    world.expect_legacy_as_written()
    expect_production(world)
    counts = world.expect_balance()
    assert counts[Outcome.MIGRATED] + counts[Outcome.KEPT] >= count_entries(world)

    verify(world)
    must_pass(world.run("report"))
    must_pass(world.run("status"))
    revert(world)
    world.expect_legacy_as_written()


def migrate_while_writing(world: Corpus) -> None:
    """Make passes until the application has done a good deal, and one more when it has ended."""
    before = world.application.done.total()
    with world.auditor.watching():
        with world.application.writing():
            for _ in range(MOST_PASSES):
                world.migrate(BATCH_SIZE)
                if world.application.done.total() >= before + ACTIONS:
                    break
        if world.application.overwrite_again():  # What was overwritten within the second of its copy is a conflict.
            must_pass(world.run("requeue", "--all"))
        world.migrate(BATCH_SIZE)
    assert world.application.done.total() >= before + ACTIONS


def switch(world: Corpus) -> None:
    """Look at every object; where rows do not tell, the application is switched, and goes on in the other bucket."""
    world.expect_objects_of_all()
    if not world.project.staying:
        return
    moment = world.run("cutover", "--yes", "--processes", "1")
    must_pass(moment)
    assert "Now is the moment to switch the application" in moment.stdout
    world.project.switched = True
    world.expect_objects_of_all()
    with world.auditor.watching(), world.application.writing():
        finished = world.run("cutover", "--finish", "--yes", "--processes", "1")
    must_pass(finished)
    assert "verified, every object stands in" in finished.stdout
    if tables_that_move(world):  # what was written to them meanwhile
        world.migrate(BATCH_SIZE)
    world.expect_objects_of_all()


def expect_production(world: Corpus) -> None:
    """Each production object holds what the application stored; those that no row names are there as well."""
    stored = {*world.application.bodies.values(), *world.application.newer.values()}
    for key in world.production.listing():
        assert world.production.read(key) in stored, key
    for legacy, production in world.project.unrelated().items():
        assert world.production.read(production) == world.application.bodies[legacy]


def count_entries(world: Corpus) -> int:
    """Return how many rows have an object."""
    return sum(bool(row.objects) for row in world.application.rows.values())


def tables_that_move(world: Corpus) -> list[str]:
    return list(dict.fromkeys(each["table"] for each in world.plan["entries"] if each.get("rows") != "stay"))


def verify(world: Corpus) -> None:
    """Compare the objects of rows that have moved; those of the others were compared by the cutover."""
    staying = world.project.staying
    for within in [Within(table) for table in tables_that_move(world)] if staying else [Within()]:
        assert sum(done.entries for done in world.enqueue(queue="verify", within=within))
        world.work("verify")
    repaired = {Outcome.MIGRATED} if staying else set[Outcome]()
    assert world.expect_balance("verify").keys() - repaired == {Outcome.KEPT}


def revert(world: Corpus) -> None:
    """Put the rows back; of those that have stayed, say so."""
    if world.project.staying:
        refused = world.run("revert", "--yes")
        assert refused.returncode == 2
        assert "so there is nothing to revert: point the application" in refused.stderr
    if not tables_that_move(world):
        return
    with world.auditor.watching():
        for table in tables_that_move(world):
            world.enqueue(BATCH_SIZE, queue="revert", within=Within(table))
        world.work("revert")
    world.expect_balance("revert")
    world.expect_rows(moved=False)
    world.expect_objects_of_all()


def must_pass(done: Done) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
