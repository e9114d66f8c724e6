"""A migration that a worker cannot work on is set aside, and the others go on."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch, is_work_left
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.cli import Run, well
from support.processes.worker_process import eventually
from support.queue.lines import Lines, finish
from support.queue.other_migrations import add_other_migration
from support.queue.plug_in import notes

SET_ASIDE = "migration unusable on this worker, skipping it for now"


def change_plan(migration: EntryTable, new_plan: str, name: str = "avatars") -> None:
    """Change the plan of a migration, past the trigger that guards it."""
    migration.execute("alter table rowferry.migration disable trigger user")
    migration.execute(f"update rowferry.migration set plan = {new_plan}, revision = revision + 1 where name = '{name}'")
    migration.execute("alter table rowferry.migration enable trigger user")


def lose_bucket(migration: Migration) -> None:
    change_plan(migration, "jsonb_set(plan, '{production,bucket}', '\"nowhere\"')")


def spoil_plan(migration: Migration) -> None:
    change_plan(migration, "plan - 'legacy'")


def done(migration: Migration) -> list[str]:
    """Return the names of the migrations that have a finished batch."""
    rows = migration.execute(
        "select distinct m.name from rowferry.migration as m inner join rowferry.batch_queue as q "
        "on q.migration_id = m.id where q.status = 'DONE' order by 1"
    )
    return [row["name"] for row in rows]


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    with closing(connect("worker")) as connection:
        yield connection


@pytest.fixture
def two(migration: Migration) -> Migration:
    """Two migrations, of which the older one, `avatars`, is due first."""
    migration.given(2, 1)
    add_other_migration(migration)
    return migration


@pytest.mark.parametrize("spoil", [lose_bucket, spoil_plan])
def test_the_others_go_on_and_the_worker_waits(spoil: Callable[[Migration], None], two: Migration) -> None:
    spoil(two)
    with two.workers(1) as (worker,):
        eventually(lambda: done(two) == ["covers"])
        assert worker.process.poll() is None
        eventually(lambda: SET_ASIDE in worker.messages())
    assert two.execute("select count(*) from rowferry.batch_attempt")[0]["count"] == 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_that_stops_when_empty_says_what_it_could_not_work_on(two: Migration, processes: str) -> None:
    lose_bucket(two)
    ended = two.run("worker", "--until-empty", "--processes", processes)
    assert ended.returncode == 2
    assert "rowferry: Migration avatars cannot be worked on here: The production bucket nowhere " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert done(two) == ["covers"]
    assert {batch["attempts"] for batch in two.batches() if batch["status"] == "INIT"} == {0}


def test_a_worker_may_serve_named_migrations_only_of_those_that_there_are(two: Migration) -> None:
    lose_bucket(two)
    ended = two.run("worker", "--until-empty", "--migration", "covers", "--migration", "covers")
    assert (ended.returncode, done(two)) == (0, ["covers"])
    assert two.execute("select count(*) from rowferry.batch_attempt")[0]["count"] == 1
    ended = two.run("worker", "--until-empty", "--migration", "cover", "--migration", "covers")
    assert ended.returncode == 2
    assert "There is no migration cover in this database (there is avatars, covers)." in ended.stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_that_stops_when_empty_does_not_wait_for_what_is_paused(two: Migration, processes: str) -> None:
    two.execute("update rowferry.migration set paused_at = now() where name = 'avatars'")
    ended = two.run("worker", "--until-empty", "--processes", processes)
    assert ended.returncode == 3
    words = "rowferry: 2 batches of migrate of avatars are left and paused: run `rowferry resume --migration avatars`."
    assert ended.stderr.splitlines().count(words) == 1
    assert done(two) == ["covers"]


def test_a_worker_that_stops_when_empty_tells_of_what_is_due_much_later_or_put_off_for_ever(two: Migration) -> None:
    two.write_plan()
    for run_after, words in (
        ("'infinity'", "1 batch of migrate of avatars is left, put off for ever by run_after."),
        ("now() + interval '1 day'", "rowferry: 1 batch of migrate of avatars is left, due at "),
    ):
        two.execute(f"update rowferry.batch_queue set run_after = {run_after} where id = 1")
        ended = two.run("worker", "--until-empty")
        assert (ended.returncode, words in ended.stderr) == (3, True), ended.stderr
        shown = well(two.run("watch", "--once")).stdout
        assert ("Batches to retry: 1, none is due" in shown) is (run_after == "'infinity'")
    assert done(two) == ["avatars", "covers"]


def test_settings_of_a_queue_that_a_worker_does_not_know_stop_that_queue_alone(
    noted: EntryTable, run_rowferry: Run
) -> None:
    """The plan of a newer version: workers of the older one do the rest, and never touch those batches."""
    assert run_rowferry("run", "note", "-b", "10", "--processes", "0", "--yes").returncode == 0
    newer = """'{"note": {"then": ["echo"]}, "echo": {"newer": true}}'"""
    change_plan(noted, f"jsonb_set(plan, '{{queue}}', {newer})")
    ended = run_rowferry("worker", "--until-empty", "--processes", "1", "--log-format", "json")
    assert ended.returncode == 2, ended.stderr
    assert "Migration avatars cannot be worked on here: In the plan avatars, " in ended.stderr
    assert "newer" in ended.stderr
    assert ended.stderr.count("queue unusable on this worker, skipping it for now") == 1
    assert notes(noted) == {"note": 30}
    assert {(batch["queue_name"], batch["status"]) for batch in noted.batches()} == {("note", "DONE"), ("echo", "INIT")}
    assert {attempt["verdict"] for attempt in noted.attempts()} == {"DONE"}
    change_plan(noted, "jsonb_set(plan, '{queue,echo}', '{}')")
    assert run_rowferry("worker", "--until-empty", "--processes", "1").returncode == 0
    assert notes(noted) == {"note": 30, "echo": 30}


def test_a_side_that_one_queue_lacks_stops_that_queue_alone(noted: EntryTable, run_rowferry: Run) -> None:
    """An operator has let a queue follow whose bucket the plan does not name."""
    assert run_rowferry("run", "note", "--processes", "0", "--yes").returncode == 0
    noted.execute("update rowferry.queue set next = '{verify, echo}' where name = 'note'")
    ended = run_rowferry("worker", "--until-empty", "--processes", "1")
    assert ended.returncode == 2, ended.stderr
    assert "Migration avatars cannot be worked on here: The plan avatars has no [legacy]" in ended.stderr
    assert notes(noted) == {"note": 30, "echo": 30}


def test_a_queue_that_is_passed_over_in_one_migration_is_served_in_others(
    database: str, connection: Connection
) -> None:
    with closing(Lines(database)) as lines:
        for name in ("one", "two"):
            lines.register(name)
            lines.add((name, "tag"), 1)
            lines.add((name, "note"), 1)
        names = {name: number for number, name in lines.names().items()}
    found: list[tuple[str, str]] = []
    while batch := claim_batch(connection, ["note", "tag"], None, [(names["one"], "tag")]):
        found.append(({number: name for name, number in names.items()}[batch.migration_id], batch.queue_name))
        finish(connection, batch)
    assert sorted(found) == [("one", "note"), ("two", "note"), ("two", "tag")]
    skipped = [(names["one"], "tag")]
    assert (is_work_left(connection, ["tag"]), is_work_left(connection, ["tag"], None, skipped)) == (True, False)


def test_migrate_works_on_its_own_migration_only(versitygw_migration: Migration) -> None:
    migration = versitygw_migration
    migration.fill(2).write_plan()
    add_other_migration(migration)
    change_plan(migration, "plan - 'legacy'", "covers")
    ended = migration.run("migrate", "--yes", "--no-objects")
    assert ended.returncode == 0, ended.stderr
    assert done(migration) == ["avatars"]
    assert len(migration.attempts()) == 1


def test_workers_that_skip_a_migration_are_named_by_status_and_errors(two: Migration) -> None:
    """A worker with wrong credentials looked healthy: "State: running", and the truth was in its log alone."""
    two.write_plan()
    lose_bucket(two)
    with two.workers(1):
        eventually(lambda: "skips migration avatars (process" in two.run("status", "--no-objects").stdout)
        shown = two.run("status", "--no-objects").stdout
        assert "State: no workers" in shown
        assert "left" not in shown.splitlines()[-1]
        assert "1 live worker skips migration avatars" in two.run("errors").stdout
        two.execute(
            "update rowferry.batch_queue as q set status = 'INIT', run_after = 'infinity' "
            "from rowferry.migration as m where m.id = q.migration_id and m.name <> 'avatars'"
        )
        (other,) = two.execute("select state from rowferry.queue_status where migration <> 'avatars'")
        assert other["state"] == "waiting"
        change_plan(two, f"jsonb_set(plan, '{{production,bucket}}', '\"{two.production.bucket}\"')")
        eventually(lambda: "skips" not in two.run("errors").stdout)
