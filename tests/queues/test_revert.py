"""`rowferry revert`: rows go back to their legacy objects, guarded like the way forth."""

import pytest

from rowferry.plan import Entries
from rowferry_queues.revert import perform as queue
from support.entries.entry_table import FROM
from support.entries.files import wait_for_next_second
from support.entries.key_forms import form_of_key, legacy_key, production_key
from support.entries.migration import Migration
from support.processes.cli import refused, well
from support.queue.queue_runs import outcomes, revert
from support.running.afterwards import act_after


def test_every_row_goes_back_and_no_object_is_touched(any_migration: Migration) -> None:
    any_migration.fill(12)
    before = any_migration.rows()
    any_migration.migrate()
    objects = any_migration.legacy.listing(), any_migration.production.listing()
    assert any_migration.rows() != before
    batches = revert(any_migration, batch_size=5)
    assert [batch["status"] for batch in batches] == ["DONE"] * 3
    assert outcomes(batches) == {"migrated": 12}
    assert any_migration.rows() == before
    assert objects == (any_migration.legacy.listing(), any_migration.production.listing())
    any_migration.audit(legacy_left=range(1, 13))


def test_what_was_put_back_can_be_migrated_again(migration: Migration) -> None:
    migration.fill(5).migrate()
    revert(migration)
    migration.migrate()
    assert outcomes(migration.batches()[-1:]) == {"kept": 5}
    migration.audit()


def test_rows_without_a_legacy_object_stay_production(any_migration: Migration) -> None:
    """Those that were production from the beginning, and those whose legacy object is gone."""
    any_migration.fill(3).migrate()
    any_migration.add_row(8, "avatar/new.png", b"new")
    any_migration.production.put("avatar/new.png", b"new")
    any_migration.legacy.delete("image/u2/me.png")
    any_migration.add_row(9, "elsewhere/x.png")
    (batch,) = revert(any_migration)
    assert (batch["status"], outcomes([batch])) == ("DONE", {"migrated": 2, "kept": 2})
    assert any_migration.rows()["2"] == "avatar/u2/me.png"
    assert any_migration.rows()["8"] == "avatar/new.png"
    assert any_migration.rows()["9"] == "elsewhere/x.png"
    any_migration.audit(legacy_left=[1, 3])


def test_rows_that_would_show_older_bytes_are_counted_and_can_be_left(any_migration: Migration) -> None:
    any_migration.fill(4).migrate()
    wait_for_next_second()
    any_migration.production.put("avatar/u2/me.png", b"newer, by the application")
    any_migration.write_plan()
    asked = any_migration.run_here("revert", "--processes", "0", typed="n\n")
    assert "Of 4 rows that were compared, 1 would show older bytes" in asked.stdout
    (batch,) = revert(any_migration, keep_newer=True)
    assert (batch["status"], outcomes([batch])) == ("DONE", {"migrated": 3, "kept": 1})
    assert any_migration.rows()["2"] == "avatar/u2/me.png"
    (batch,) = revert(any_migration)[1:]
    assert outcomes([batch]) == {"migrated": 1}


def test_only_the_range_that_is_named_goes_back(migration: Migration) -> None:
    from rowferry_enqueue.enqueue import Within

    migration.fill(10).migrate()
    batches = revert(migration, batch_size=2, within=Within("public.avatars", "4", "7"))
    assert outcomes(batches) == {"migrated": 4}
    migration.audit(legacy_left=range(4, 8))


def test_a_row_that_the_application_rewrites_meanwhile_is_left_to_it(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.fill(3).migrate()
    change = "update public.avatars set path = 'avatar/u1/me.png' where id = 2; delete from public.avatars where id = 3"
    act_after(monkeypatch, queue, "run_copies", lambda: migration.execute(change))
    (batch,) = revert(migration)
    assert outcomes([batch]) == {"migrated": 1, "changed": 1, "deleted": 1}
    assert migration.rows() == {"1": "image/u1/me.png", "2": "avatar/u1/me.png"}


def test_a_row_that_the_database_refuses_stays_and_goes_back_once_it_may(migration: Migration) -> None:
    migration.fill(4).migrate()
    migration.execute("alter table public.avatars add constraint not_2 check (path <> 'image/u2/me.png')")
    (batch,) = revert(migration)
    assert (batch["status"], outcomes([batch])) == ("ERROR", {"migrated": 3, "failed": 1})
    migration.audit(legacy_left=[1, 3, 4])
    migration.execute("alter table public.avatars drop constraint not_2")
    (batch,) = revert(migration)
    assert (batch["status"], outcomes([batch])) == ("DONE", {"migrated": 4})


def test_the_way_back_is_the_way_forth_reversed() -> None:
    entries = [
        Entries("t", "id", "key", *prefixes)
        for prefixes in (("image/", "avatar/"), ("", "a/"), ("a/b/", "a/"), ("a/", ""))
    ]
    for plan in entries:
        for key in ("image/x", "a/b/c", "a/x", "x", "avatar/", "é/ü"):
            if form_of_key(key, plan) != "legacy":
                continue
            try:
                mapped = production_key(key, plan)
            except ValueError:
                continue
            assert legacy_key(mapped, plan) == key
    with pytest.raises(ValueError, match="would still have the production form"):
        legacy_key("a/a/x", entries[1])
    with pytest.raises(ValueError, match="would be empty"):
        legacy_key("a/", entries[1])
    with pytest.raises(ValueError, match="does not have the production form"):
        legacy_key("image/x", entries[0])


def test_the_command_asks_first_and_refuses_an_id_that_is_none(migrated: Migration) -> None:
    asked = migrated.run_here("revert")
    assert asked.returncode == 2
    assert "Point these rows back" in asked.stdout
    assert "There is no terminal to ask on: add --yes" in asked.stderr
    said = refused(migrated.run_here("revert", "--first", "x", "--yes"))
    assert 'invalid input syntax for type bigint: "x"; correct --first or --last.' in said
    assert not any(str(key).startswith(FROM) for key in migrated.rows().values())


def test_the_command_puts_a_range_back_and_accounts_for_it(migrated: Migration) -> None:
    arguments = ("revert", "--table", "public.avatars", "--first", "2", "--last", "3", "--processes", "1", "--yes")
    done = well(migrated.run(*arguments))
    assert "public.avatars.path" in done.stdout
    assert "2 entries to revert" in done.stdout
    assert "migrated             2  row reverted to its legacy key" in done.stdout
    assert "entries              2  the sum" in done.stdout
    migrated.audit(legacy_left=[2, 3])


def test_it_says_what_batches_in_error_hold_back(migrated: Migration) -> None:
    migrated.add_row(20, "image/lost.png")
    migrated.migrate()
    done = well(migrated.run_here("revert", "--yes", "--processes", "1"))
    words = "1 batch of migration avatars in ERROR: a later `rowferry migrate` skips their rows"
    assert words in done.stdout
    assert "until `rowferry requeue`" in done.stdout


@pytest.fixture
def stuck(migration: Migration) -> Migration:
    """A migration that has ended with a batch in ERROR, five of whose six rows have moved."""
    migration.fill(5)
    migration.add_row(6, "image/lost.png")
    migration.migrate()
    return migration.write_plan()


SKIPPED = (
    "Any legacy entries in the ranges of 1 batch in ERROR of the queue migrate are skipped. "
    "`rowferry errors` says why; `rowferry requeue --all --migration avatars` retries them.\n"
)


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.soak), ("--processes", "1")])
def test_a_reversal_says_at_its_end_what_the_next_pass_skips(options: tuple[str, ...], stuck: Migration) -> None:
    done = well(stuck.run_here("revert", *options, "--yes"))
    assert done.stdout.endswith(f"In the next `rowferry migrate`: {SKIPPED}")


def test_an_enqueue_says_what_batches_in_error_keep_from_it(stuck: Migration) -> None:
    revert(stuck)
    assert stuck.run("enqueue", "--yes").stdout.endswith(f"{SKIPPED}Nothing to enqueue.\n")
    done = stuck.run_here("migrate", "--processes", "1", "--no-objects", "--yes")
    assert (done.returncode, SKIPPED in done.stdout) == (1, True)
    stuck.run("requeue", "--all", "--migration", "avatars")
    stuck.work()
    stuck.audit(legacy_left=[6])
