"""A check finds every problem of a plan before the first copy, and leaves nothing behind."""

import pytest

from support.entries.checks import add_second_table, check, problems
from support.entries.migration import Migration
from support.processes.cli import assert_went_well
from support.s3.objects import Listing


def test_a_plan_that_fits_has_no_problem_and_leaves_no_object(any_migration: Migration) -> None:
    any_migration.fill(3)
    before: Listing = any_migration.legacy.listing()
    assert problems(any_migration) == []
    assert any_migration.production.listing() == {}
    assert any_migration.production.open_uploads() == []
    assert any_migration.legacy.listing() == before


@pytest.mark.parametrize("side", ["legacy", "production"])
def test_credentials_that_are_refused_are_a_problem(
    versitygw_migration: Migration, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    versitygw_migration.fill(1)
    monkeypatch.setenv(f"ROWFERRY_{side.upper()}_SECRET_ACCESS_KEY", "wrong")
    (found, *_) = problems(versitygw_migration)
    assert f"the {side} bucket" in found
    assert "cannot be" in found
    assert "wrong" not in found


def test_several_problems_are_found_at_once(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    migration.insert({"1": "image/" + "a" * 1024})
    add_second_table(migration, where="nonsense > 1")
    migration.plan["legacy"]["bucket"] = "there-is-none"
    monkeypatch.delenv("ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY")
    found = "\n".join(problems(migration))
    for expected in ("nonsense", "1,024 bytes", "no legacy bucket", "ROWFERRY_PRODUCTION_SECRET_ACCESS_KEY"):
        assert expected in found


def test_the_command_tells_the_direction_prints_a_list_and_ends_with_0(migration: Migration) -> None:
    migration.fill(2).write_plan()
    done = migration.run("check")
    assert_went_well(done)
    assert "✓ public.avatars.path: 2 legacy entries" in done.stdout
    name, before, after, *_ = done.stdout.splitlines()
    assert name == "Migration avatars"
    assert (before.startswith("  from  s3://"), before.endswith("(legacy: only read)")) == (True, True)
    assert (after.startswith("  to    s3://"), after.endswith("(production: written)")) == (True, True)


def test_a_database_that_was_not_initialised_yet_is_a_note(migration: Migration) -> None:
    migration.fill(1)
    migration.execute("drop schema rowferry cascade")
    (told,) = [found for found in check(migration) if "schema" in found.what]
    assert (told.level, told.what) == (
        "note",
        "this database has no schema rowferry yet: `rowferry init` makes it, or `rowferry migrate`",
    )


def test_a_database_that_is_read_only_or_away_is_a_problem_and_the_buckets_are_checked(migration: Migration) -> None:
    migration.fill(1).write_plan()
    done = migration.run("check", PGOPTIONS="-c default_transaction_read_only=on")
    assert done.returncode == 2
    assert "this database is read-only; see that DATABASE_URL or PG* does not lead to a standby." in done.stderr
    done = migration.run("check", DATABASE_URL="postgresql://127.0.0.1:1/nowhere")
    assert done.returncode == 2
    assert "PostgreSQL cannot be reached" in done.stdout
    assert "✓ the legacy bucket" in done.stdout
