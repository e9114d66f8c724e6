"""Promises of `rowferry pause` and `rowferry resume`."""

import json

import psycopg
import pytest
from psycopg.rows import DictRow

from rowferry.db.connection import Connection, connect
from rowferry.errors import DatabaseBusy, RowferryError
from rowferry_cli.status.pause import pause, resume
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.other_migrations import add_other_migration
from support.s3.request_log import logged


def done(migration: EntryTable, label: str) -> int:
    (row,) = migration.execute(
        "select count(*) from rowferry.batch_queue where status = 'DONE' and payload ->> 'entries' = %s", (label,)
    )
    return row["count"]


@pytest.mark.parametrize("by", ["command", "update"])
def test_a_paused_migration_finishes_its_claimed_batches_and_claims_nothing_more_until_it_is_resumed(
    migration: Migration, by: str
) -> None:
    migration.fill(40)
    with logged(migration.legacy.endpoint_url) as log:
        migration.plan["legacy"]["endpoint_url"] = migration.plan["production"]["endpoint_url"] = log.endpoint_url
        migration.write_plan().enqueue(10)
        with migration.workers(1, "--max-batches=2"):
            with log.holding(lambda seen: seen.writes_object and seen.bucket == migration.production.bucket):
                wait_for(lambda: len(migration.execute("select * from rowferry.claimed_batches")) == 2)
                if by == "update":
                    migration.execute("update rowferry.migration set paused_at = now()")
                else:
                    assert migration.run("pause").stdout == (
                        "avatars is paused.\n"
                        "  running batches, which will finish: 2\n"
                        "  waiting batches: 2\n"
                        "  to continue: rowferry resume --migration avatars\n"
                    )
                add_other_migration(migration)
            # The batch of the other migration is the youngest: a worker that claims it has passed over the paused ones.
            wait_for(lambda: done(migration, "public.covers.path") == 1 and done(migration, "public.avatars.path") == 2)
            assert [batch["status"] for batch in migration.batches()] == ["DONE", "DONE", "INIT", "INIT", "DONE"]
            if by == "update":
                migration.execute("update rowferry.migration set paused_at = null")
            else:
                assert migration.run("resume").stdout == "avatars is resumed: 2 batches open, 1 worker alive.\n"
            migration.wait_until_done()
    migration.audit()


def test_pausing_twice_keeps_the_first_time_and_resuming_twice_says_so(table: EntryTable) -> None:
    table.add_legacy(range(3)).enqueue(1)
    with connect("test", autocommit=True) as connection:
        (first,) = pause(connection, "avatars")
        (second,) = pause(connection, "avatars")
        assert (first["changed"], second["changed"]) == (True, False)
        assert first["paused_at"] == second["paused_at"] is not None
        (third,) = resume(connection, "avatars")
        (fourth,) = resume(connection, "avatars")
    assert (third["changed"], third["paused_at"], third["waiting"]) == (True, first["paused_at"], 3)
    assert (fourth["changed"], fourth["paused_at"]) == (False, None)


def test_resume_repeats_the_reason_for_which_workers_had_paused(migration: Migration) -> None:
    migration.write_plan().enqueue()
    migration.execute("select rowferry.pause_migration(id, 'The token has expired.') from rowferry.migration")
    resumed = migration.run("resume").stdout
    assert "  it was paused because: The token has expired.\n" in resumed
    assert "it was paused because" not in migration.run("resume").stdout


def test_all_migrations_can_be_paused_and_resumed_at_once(migration: Migration) -> None:
    migration.given(1)
    add_other_migration(migration)
    assert [line for line in migration.run("pause", "--all-migrations").stdout.splitlines() if "is paused" in line] == [
        "avatars is paused.",
        "covers is paused.",
    ]
    migration.work()
    assert migration.statuses() == {"INIT"}
    assert "covers is paused already, since 2" in migration.run("pause", "--migration", "covers").stdout
    resumed = migration.run("resume", "--all-migrations")
    assert resumed.stdout == (
        "avatars is resumed: 1 batch open, 0 workers alive.\n"
        "  no worker is running: start `rowferry worker` on any host, or run `rowferry migrate`\n"
        "covers is resumed: 1 batch open, 0 workers alive.\n"
        "  no worker is running: start `rowferry worker` on any host, or run `rowferry migrate`\n"
    )
    migration.work()
    assert migration.statuses() == {"DONE"}


def test_an_operators_machine_needs_no_plan_where_there_is_one_migration(migration: Migration) -> None:
    migration.given(1)
    assert migration.run("pause").stdout.startswith("avatars is paused.")
    add_other_migration(migration)
    unclear = migration.run("resume")
    assert (unclear.returncode, unclear.stdout) == (2, "")
    assert unclear.stderr.startswith(
        "rowferry: This database has several migrations: add --migration with one of avatars, covers."
    )


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_mistakes_are_one_sentence_and_exit_status_2(migration: Migration, command: str) -> None:
    nothing_yet = migration.run(command)
    assert nothing_yet.stderr == ("rowferry: This database has no migration yet: run `rowferry enqueue` first.\n")
    migration.given(1)
    unknown = migration.run(command, "--migration", "avatar")
    assert unknown.stderr == "rowferry: There is no migration 'avatar' in this database; there is avatars.\n"
    both = migration.run(command, "--migration", "avatars", "--all-migrations")
    assert both.stderr.startswith("rowferry: give --migration or --all-migrations, not both; see ")
    assert {ended.returncode for ended in (nothing_yet, unknown, both)} == {2}


def test_a_session_that_holds_the_migration_is_given_as_the_reason_why_a_pause_must_wait(table: EntryTable) -> None:
    table.add_legacy([1]).enqueue()
    with psycopg.connect(table.dsn) as holder, connect("test", autocommit=True) as connection:
        holder.execute("select from rowferry.migration for update")
        connection.execute("set lock_timeout = '10ms'")
        with pytest.raises(DatabaseBusy, match="Could not pause: another session locks the migration's row"):
            pause(connection, None)
        holder.rollback()
        assert len(pause(connection, None)) == 1


def test_a_pause_waits_for_no_view(table: EntryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_slowly(_connection: Connection, _migration: str | None) -> list[DictRow]:
        return table.execute("select 1 / (paused_at is null)::integer as batches from rowferry.migration")

    table.add_legacy([1]).enqueue()
    monkeypatch.setattr("rowferry_cli.status.pause.read_chain", read_slowly)
    with (
        connect("test", autocommit=True) as connection,
        pytest.raises(RowferryError, match=r"It is paused; .* division by zero"),
    ):
        pause(connection, None)


def test_the_reason_of_a_person_is_shown_and_is_no_alarm(migration: Migration) -> None:
    """A run waits until the person resumes; one that workers have paused ends, since only a repair helps it."""
    migration.write_plan().enqueue()
    assert "  reason: The disk is full\n" in migration.run("pause", "--reason", "The disk is full").stdout
    assert "The disk is full" in migration.run("status", "--no-objects").stdout
    (state,) = migration.execute("select pause_reason, paused_by_worker from rowferry.migration_state")
    assert state == {"pause_reason": "The disk is full", "paused_by_worker": False}
    assert migration.run("resume").stdout.splitlines()[1:2] == ["  it was paused because: The disk is full"]
    assert migration.execute("select pause_reason from rowferry.migration") == [{"pause_reason": None}]


def test_queues_shows_a_pause_of_the_migration_and_of_a_queue_with_its_reason(migration: Migration) -> None:
    migration.given(1).write_plan()
    for queue, whole, words in (((), True, "with its migration "), (("--queue", "migrate"), False, "")):
        migration.run("pause", "--reason", "Night is over", *queue)
        (line,) = json.loads(migration.run("queues", "--json").stdout)["queues"]
        assert (line["paused_at"] is not None, line["is_paused_whole"]) == (True, whole)
        assert (line["pause_reason"], line["batches_left"]) == ("Night is over", 1)
        shown = migration.run("queues").stdout
        assert f"migrate of avatars is paused {words}since" in shown
        assert shown.rstrip().endswith("waiting: Night is over.")
        migration.run("resume", *queue)
    assert json.loads(migration.run("queues", "--json").stdout)["queues"][0]["paused_at"] is None
