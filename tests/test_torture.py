"""The short form of `make torture`, and proof that its auditor and its final account see what they are there for."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import psycopg
import pytest
from click.testing import CliRunner

import torture.__main__ as runner
from processes import wait_for
from torture import settlement
from torture.page import HEAD, PAGE, fill_in, read_results
from torture.run import Run
from torture.scenarios import NAMES, find_scenario
from torture.settlement import (
    Expected,
    settle,
    settle_attempts,
    settle_batches,
    settle_legacy,
    settle_locks,
    settle_production,
    settle_rows,
    settle_uploads,
)
from torture.world import World, key_of, make_world

pytestmark = pytest.mark.timeout(400)
one_after_the_other = pytest.mark.xdist_group("torture")

ENTRIES = 12

Plant = Callable[[World], str]
"""Spoils something, and returns how the violation begins that must be found then."""
Part = Callable[[World, Expected], Iterator[str]]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xdist_group(f"torture {n % 2}")) for n, name in enumerate(NAMES)]
)
def test_nothing_is_lost_doubled_or_left_behind(name: str) -> None:
    run = Run(name, seed=1, short=True)
    find_scenario(name).torture(run)
    if run.skipped and not run.audits:
        pytest.skip(run.skipped[0])
    assert run.violations == []
    assert run.violation_count == 0
    assert run.faults.total()
    assert run.audits >= run.entries


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A migration that has come to its end: each test spoils something else of it."""
    with make_world(seed=1) as world:
        world.fill(ENTRIES)
        world.enqueue(4)
        with world.workers(1) as crew:
            world.wait_until_done()
            assert crew.stop() == [0]
        yield world


@one_after_the_other
def test_a_calm_migration_adds_up(world: World) -> None:
    world.auditor.end()
    assert list(settle(world, Expected())) == []
    assert world.auditor.violations == []


def spoil_row(world: World) -> str:
    world.query("update public.avatars set path = 'avatar/nowhere.png' where id = 1 returning id")
    return "row 1 names no object: 'avatar/nowhere.png'"


def swap_rows(world: World) -> str:
    other = world.ask("select path from public.avatars where id = 2")
    world.query("update public.avatars set path = %s where id = 3 returning id", other)
    return "row 3 names an object of "


def lose_row(world: World) -> str:
    world.query("delete from public.avatars where id = 4 returning id")
    return "row 4 is lost"


def add_row(world: World) -> str:
    world.query("insert into public.avatars values (99, null) returning id")
    return "row 99 appeared"


def leave_row_behind(world: World) -> str:
    world.query("update public.avatars set path = %s where id = 5 returning id", key_of(5))
    return "row 5 is still legacy"


def spoil_object(world: World) -> str:
    world.migration.production.put(production_key_of(6), b"")
    return "row 6 names an object of 0 wrong bytes"


def lose_object(world: World) -> str:
    world.migration.production.delete(production_key_of(7))
    return "row 7 names no object"


def add_object(world: World) -> str:
    world.migration.production.put("avatar/stray.png", b"")
    return "production object 'avatar/stray.png' belongs to no row"


def spoil_properties(world: World) -> str:
    body = world.migration.production.read(production_key_of(10))
    world.migration.production.put(production_key_of(10), body, ContentType="text/plain", Metadata={"number": "10"})
    return f"production object {production_key_of(10)!r} has other properties"


def rewrite_legacy_object(world: World) -> str:
    """The bytes and the properties stay as they were: the time of the write tells."""
    found = world.migration.legacy.head(key_of(8))
    body = world.migration.legacy.read(key_of(8))
    world.migration.legacy.put(key_of(8), body, ContentType=found["ContentType"], Metadata={"number": "0"})
    return f"legacy object {key_of(8)!r} was written"


def delete_legacy_object(world: World) -> str:
    world.migration.legacy.delete(key_of(9))
    return f"legacy object {key_of(9)!r} is gone"


def add_legacy_object(world: World) -> str:
    world.migration.legacy.put("image/new.png", b"")
    return "legacy object 'image/new.png' appeared"


def open_upload(world: World) -> str:
    legacy = world.migration.legacy
    legacy.client.create_multipart_upload(Bucket=legacy.bucket, Key="image/half.png")
    return "a multipart upload of the legacy object 'image/half.png' is open"


def reopen_batch(world: World) -> str:
    world.query("update rowferry.batch_queue set status = 'ERROR', error = 'planted' where id = 1 returning id")
    return "batch 1 is ERROR: planted"


def count_twice(world: World) -> str:
    world.query(
        "update rowferry.batch_queue set migrated = migrated + 1, entry_count = entry_count + 1 "
        "where id = 2 returning id"
    )
    return f"{ENTRIES} entries have {ENTRIES + 1} outcomes"


def leave_attempt_open(world: World) -> str:
    world.query("update rowferry.batch_attempt set verdict = null where id = 1 returning id")
    return "attempt 1 at batch "


def forget_sign_off(world: World) -> str:
    worker = world.ask("update rowferry.worker set stopped_at = null returning id")
    return f"worker {worker} has neither died nor signed off"


PLANTS = {
    settle_rows: [spoil_row, swap_rows, lose_row, add_row, leave_row_behind, spoil_object, lose_object],
    settle_production: [add_object, spoil_properties],
    settle_legacy: [rewrite_legacy_object, delete_legacy_object, add_legacy_object],
    settle_uploads: [open_upload],
    settle_batches: [reopen_batch, count_twice],
    settle_attempts: [leave_attempt_open, forget_sign_off],
}


@one_after_the_other
@pytest.mark.parametrize(("part", "plant"), [(part, plant) for part, plants in PLANTS.items() for plant in plants])
def test_the_final_account_finds(part: Part, plant: Plant, world: World) -> None:
    expected = plant(world)
    found = [*part(world, Expected()), *world.auditor.violations]
    assert any(words.startswith(expected) for words in found), found


@one_after_the_other
def test_the_final_account_finds_a_session_that_was_left_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement, "LOCKS_END_WITHIN", timedelta(seconds=0.1))
    with psycopg.connect(world.migration.dsn, application_name="rowferry worker left:1:behind") as left:
        left.execute("select from public.avatars for update")
        assert any(words.startswith("locks are left") for words in settle_locks(world, Expected()))
    assert list(settle_locks(world, Expected())) == []


def test_the_auditor_sees_at_once_and_says_when_it_cannot() -> None:
    with make_world(seed=1) as world:
        world.fill(ENTRIES)
        world.enqueue(ENTRIES)
        world.rowferry("worker", "--until-empty")
        seen = world.auditor.audits
        wait_for(lambda: world.auditor.audits > seen + 2 * ENTRIES)
        assert world.auditor.violations == []
        for plant in (spoil_row, swap_rows, spoil_object, lose_object):
            expected = plant(world)
            wait_for(partial(has_violation, world, expected))
        world.migration.execute("alter table public.avatars rename to elsewhere")
        wait_for(partial(has_violation, world, "the auditor itself failed"))


def has_violation(world: World, words: str) -> bool:
    return any(found.startswith(words) for found in world.auditor.violations)


def test_a_violation_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def torture(run: Run) -> None:
        run.violation_count = run.seed

    monkeypatch.setattr(runner, "find_scenario", lambda _: SimpleNamespace(WHAT="", torture=torture))
    assert CliRunner().invoke(runner.main, ["--seed=0"]).exit_code == 0
    assert CliRunner().invoke(runner.main, ["--seed=1"]).exit_code == 1


def test_a_scenario_that_fails_is_a_violation_and_the_others_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def torture(_: Run) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(runner, "find_scenario", lambda _: SimpleNamespace(WHAT="", torture=torture))
    ended = CliRunner().invoke(runner.main, ["--seed=0"])
    assert ended.exit_code == 1
    assert ended.output.count("VIOLATION: the scenario did not come to its end") == len(NAMES)


def test_the_table_in_the_docs_is_that_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert HEAD in page
    assert fill_in(page, read_results()) == page
    assert [result["scenario"] for result in read_results()] == list(NAMES)
    for result in read_results():
        assert result["violations"] == 0
        assert result["what"] == find_scenario(result["scenario"]).WHAT


def production_key_of(number: int) -> str:
    return key_of(number).replace("image/", "avatar/", 1)
