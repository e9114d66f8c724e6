"""The short form of `make torture`, and proof that its auditor and its final account find what they are there for."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from support.docs.doc_pages import read_table
from support.processes.processes import wait_for
from torture import final_checks
from torture.__main__ import PAGE
from torture.final_checks import Expected, check_locks, run_final_checks
from torture.run import PART_BYTES, Run, make_world
from torture.scenarios import SCENARIOS
from torture.seeded_faults import ENTRIES, SEEDED_FAULTS
from torture.world import LARGE_BYTES, World

pytestmark = pytest.mark.timeout(600)
one_after_the_other = pytest.mark.xdist_group("torture")


TELLING = ("kills",)
"""What every push is held to; `make test-nightly` runs the others, `make torture` all of them in their long form."""


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    group = pytest.mark.xdist_group(f"torture {[*SCENARIOS].index(name) % 2}")
    return [group] if name in TELLING else [group, pytest.mark.soak]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in SCENARIOS])
def test_nothing_is_lost_doubled_or_left_behind(name: str) -> None:
    scenario = SCENARIOS[name]
    run = Run(name, seed=1, short=True, promised=scenario.faults)
    scenario(run).torture()
    if run.was_skipped:
        pytest.skip(run.skipped[0])
    assert run.violations == []
    assert run.violation_count == 0
    assert run.promised
    assert run.missing == []


@pytest.mark.soak
def test_the_table_in_the_docs_is_of_all_scenarios_and_nothing_was_violated() -> None:
    rows = read_table(PAGE, "The runs")
    assert rows
    assert [(name, what) for name, what, *_ in rows] == [(name, kind.what) for name, kind in SCENARIOS.items()]
    for name, _, faults, *_, violations, _, _ in rows:
        assert violations == "0"
        assert all(re.search(rf"[1-9][\d,]* {re.escape(kind)}", faults) for kind in SCENARIOS[name].faults)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A migration that has come to its end: each test spoils something else of it."""
    with make_world(seed=1) as world:
        world.fill(ENTRIES)
        world.enqueue(4)
        with world.workers(1) as pool:
            world.wait_until_done()
            assert pool.stop() == [0]
        yield world


@pytest.mark.soak
@one_after_the_other
def test_a_calm_migration_adds_up(world: World) -> None:
    world.auditor.end()
    assert list(run_final_checks(world, Expected())) == []
    assert world.auditor.violations == []


@pytest.mark.soak
@one_after_the_other
def test_large_objects_travel_part_by_part(world: World) -> None:
    etags = {size: str(etag) for etag, size, _ in world.migration.production.listing().values()}
    assert etags[LARGE_BYTES].strip('"').endswith(f"-{-(-LARGE_BYTES // PART_BYTES)}")


@pytest.mark.soak
@one_after_the_other
@pytest.mark.parametrize("fault", SEEDED_FAULTS)
def test_the_final_account_finds(fault: str, world: World) -> None:
    seeded = SEEDED_FAULTS[fault]
    seeded.seed(world)
    found = [*seeded.part(world, Expected()), *world.auditor.violations]
    assert any(words.startswith(seeded.violation) for words in found), found


@pytest.mark.soak
@one_after_the_other
def test_the_final_account_finds_a_session_that_was_left_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final_checks, "LOCKS_END_WITHIN", timedelta(seconds=0.1))
    with psycopg.connect(world.migration.dsn, application_name="rowferry worker left:1:behind") as left:
        left.execute("select from public.avatars for update")
        assert any(words.startswith("locks are left") for words in check_locks(world, Expected()))
    assert list(check_locks(world, Expected())) == []


@pytest.mark.soak
@one_after_the_other
def test_the_auditor_sees_at_once_and_says_when_it_cannot() -> None:
    with make_world(seed=1) as world:
        world.fill(ENTRIES)
        world.enqueue(ENTRIES)
        world.rowferry("worker", "--until-empty")
        seen = world.auditor.audits
        wait_for(lambda: world.auditor.audits > seen + 2 * ENTRIES)
        assert world.auditor.violations == []
        for fault in ("a row that names nothing", "a row with another's object", "a spoilt object", "a lost object"):
            SEEDED_FAULTS[fault].seed(world)
            wait_for(partial(has_violation, world, SEEDED_FAULTS[fault].violation))
        world.migration.execute("alter table public.avatars rename to elsewhere")
        wait_for(partial(has_violation, world, "the auditor itself failed"))


def has_violation(world: World, words: str) -> bool:
    return any(found.startswith(words) for found in world.auditor.violations)
