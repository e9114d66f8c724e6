"""Passes over entries whose rows stay: each takes what changed since the last, and nothing is lost between two."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg import sql

from rowferry.db.statements import list_sql
from rowferry.errors import UsageError
from support.entries.files import (
    LONG_AGO,
    add_file,
    make_table,
    now,
    passes,
    read_production,
    replace_file,
    wait_for_next_second,
)
from support.entries.migration import Migration
from support.postgres.roles import new_role
from support.processes.cli import well
from support.processes.processes import wait_for
from support.processes.worker_process import WorkerProcess


@pytest.fixture
def staying(migration: Migration) -> Migration:
    return make_table(migration, "timestamptz")


@pytest.fixture
def three(staying: Migration) -> Migration:
    """Three files that changed long ago."""
    for number in (1, 2, 3):
        add_file(staying, number)
    return staying


MIGRATE = ("migrate", "--yes", "--processes", "1", "--no-objects")


def make_pass(migration: Migration, **request: Any) -> int:
    """Make a pass and work on it; return how many entries it took."""
    (table,) = migration.enqueue(**request)
    migration.work()
    return table.entries


def back_date(migration: Migration, by: timedelta = timedelta(hours=1)) -> None:
    """Make the passes so far begin earlier, as if they had been made then."""
    migration.execute("update rowferry.pass set began_at = began_at - %s, watermark = watermark - %s", (by, by))


def test_a_later_pass_takes_what_changed_since(three: Migration) -> None:
    assert make_pass(three) == 3
    assert read_production(three, 3) == ["v1"] * 3
    assert make_pass(three) == 0
    replace_file(three, 2, "v2")
    add_file(three, 4, changed=now())
    assert make_pass(three) == 2
    assert read_production(three, 4) == ["v1", "v2", "v1", "v1"]
    assert three.statuses() == {"DONE"}
    three.check_balance()
    assert three.execute("select path from public.files where id = 2") == [{"path": "f2"}]


def test_rows_without_a_time_are_taken_by_each_pass_and_without_changed_all_are(staying: Migration) -> None:
    add_file(staying, 1, changed=None)
    add_file(staying, 2)
    assert [make_pass(staying) for _ in range(3)] == [2, 1, 1]
    del staying.plan["entries"][0]["changed"]
    wait_for_next_second()
    staying.legacy.put("f2", b"v2")
    assert make_pass(staying) == 2
    assert read_production(staying, 2) == ["v1", "v2"]
    batch = staying.batches()[-1]
    assert (batch["migrated"], batch["kept"]) == (1, 1)


@pytest.mark.parametrize("zone", [-11, 0, 13])
def test_a_time_without_a_zone_is_read_as_of_any(migration: Migration, zone: int) -> None:
    staying = make_table(migration, "timestamp")

    def local(minutes_ago: float) -> datetime:
        return (now() + timedelta(hours=zone, minutes=-minutes_ago)).replace(tzinfo=None)

    add_file(staying, 1, changed=local(60 * 48))
    add_file(staying, 2, changed=local(20))
    assert make_pass(staying) == 2
    back_date(staying, timedelta(minutes=10))
    replace_file(staying, 1, "v2", local(5))
    assert make_pass(staying) >= 1
    assert read_production(staying, 2) == ["v2", "v1"]


@pytest.mark.parametrize("factor", [1, 1_000, 1_000_000])
def test_a_number_counts_from_1970_in_any_unit(migration: Migration, factor: int) -> None:
    staying = make_table(migration, "bigint")
    for number in (1, 2):
        add_file(staying, number, changed=int(LONG_AGO.timestamp()) * factor)
    make_pass(staying)
    replace_file(staying, 2, "v2", int(time.time()) * factor)
    assert make_pass(staying) == 1
    assert read_production(staying, 2) == ["v1", "v2"]


def test_a_date_takes_the_whole_day_before(migration: Migration) -> None:
    staying = make_table(migration, "date")
    add_file(staying, 1, changed=LONG_AGO)
    add_file(staying, 2, changed=now().date())
    assert [make_pass(staying), make_pass(staying)] == [2, 1]


def test_a_column_that_is_no_time_is_refused(migration: Migration) -> None:
    staying = make_table(migration, "text")
    with pytest.raises(UsageError, match="updated_at is text, which is no time of a change; name a timestamp"):
        staying.enqueue()


def test_what_an_open_transaction_commits_late_is_for_the_next_pass(staying: Migration) -> None:
    add_file(staying, 1)
    staying.legacy.put("f2", b"v1")
    began = "select min(xact_start) as began from pg_stat_activity where pid = %s"
    with psycopg.connect(staying.dsn) as application:
        # The transaction wrote the time at which it began, and commits after the pass has read the table.
        application.execute("insert into public.files values (2, 'f2', now())")
        make_pass(staying)
        (only,) = passes(staying)
        (row,) = staying.execute(began, (application.info.backend_pid,))
        assert only["watermark"] <= row["began"] - timedelta(minutes=1)
    assert make_pass(staying) == 1
    assert read_production(staying, 2) == ["v1", "v1"]


def test_transactions_whose_begin_is_hidden_keep_the_watermark_where_it_is(staying: Migration) -> None:
    add_file(staying, 1)
    make_pass(staying)
    with new_role(staying.dsn) as owner, psycopg.connect(staying.dsn) as application:
        staying.execute(
            sql.SQL(
                "grant usage, create on schema rowferry to {0}; grant all on all tables in schema rowferry to {0}; "
                "alter function rowferry.begin_pass owner to {0}"
            ).format(sql.Identifier(owner))
        )
        application.execute("select 1")  # and goes on
        make_pass(staying)
        staying.execute("alter function rowferry.begin_pass owner to current_user")
    first, second = passes(staying)
    assert second["watermark"] == first["watermark"]
    assert "grant pg_read_all_stats to" in second["held_back_by"]


@pytest.fixture
def prepared(staying: Migration) -> Iterator[Migration]:
    """Leave no prepared transaction behind."""
    yield staying
    for found in staying.execute("select gid from pg_prepared_xacts where database = current_database()"):
        staying.execute(f"rollback prepared '{found['gid']}'")


def test_a_prepared_transaction_keeps_the_watermark_where_it_is(prepared: Migration) -> None:
    add_file(prepared, 1)
    prepared.legacy.put("f2", b"v1")
    make_pass(prepared)
    with psycopg.connect(prepared.dsn, autocommit=True) as application:
        application.execute("begin")
        application.execute("insert into public.files values (2, 'f2', now())")
        application.execute("prepare transaction 'late'")
    make_pass(prepared)
    first, second = passes(prepared)
    assert second["watermark"] == first["watermark"]
    assert 'the prepared transaction "late"' in second["held_back_by"]
    prepared.execute("commit prepared 'late'")
    assert make_pass(prepared) == 1
    assert read_production(prepared, 2) == ["v1", "v1"]


def test_a_row_that_changes_inside_a_waiting_batch_is_copied_after_its_change(three: Migration) -> None:
    three.enqueue()
    replace_file(three, 2, "v2")
    three.work()
    assert read_production(three, 3) == ["v1", "v2", "v1"]
    assert make_pass(three) == 1  # the change is newer than the pass


def test_a_batch_in_error_takes_part_in_the_next_pass(three: Migration) -> None:
    three.legacy.delete("f2")
    three.plan["migration"]["max_attempts"] = 1
    assert make_pass(three) == 3
    assert three.statuses() == {"ERROR"}
    assert make_pass(three) == 3
    (batch,) = three.batches()
    assert (batch["migrated"] + batch["kept"], batch["missing"]) == (2, 1)
    three.legacy.put("f2", b"v1")
    replace_file(three, 3, "v2")
    make_pass(three)
    assert three.statuses() == {"DONE"}
    assert read_production(three, 3) == ["v1", "v1", "v2"]
    three.check_balance()


def test_a_batch_in_error_forgets_a_switch_that_was_taken_back(staying: Migration) -> None:
    for number in (1, 2):
        add_file(staying, number)
    staying.legacy.delete("f2")
    switched_at = now() - timedelta(seconds=2)
    make_pass(staying, switched_at=switched_at)
    wait_for_next_second()
    staying.production.put("f1", b"written while it was switched")
    make_pass(staying, switched_at=switched_at)
    assert staying.statuses() == {"ERROR"}
    assert staying.failure_of(2)[0] == "missing"
    make_pass(staying)
    assert staying.failure_of(1)[0] == "conflict"


def test_a_pass_that_was_limited_or_lost_a_batch_makes_the_next_one_take_all_rows(three: Migration) -> None:
    assert make_pass(three, limit=1) == 1
    assert passes(three)[0]["watermark"] is None
    assert three.enqueue(2)[0].entries == 3
    three.execute("delete from rowferry.batch_queue where id = (select max(id) from rowferry.batch_queue)")
    three.work()
    assert make_pass(three) == 3
    assert read_production(three, 3) == ["v1"] * 3


def test_after_a_clock_was_set_back_a_pass_takes_all_rows(three: Migration) -> None:
    """What changed between, by that clock, was before the watermark."""
    make_pass(three)
    back_date(three, -timedelta(hours=2))
    replace_file(three, 2, "v2")
    assert make_pass(three) == 3
    assert read_production(three, 3) == ["v1", "v2", "v1"]
    assert make_pass(three) == 1, "the one that has changed within the last minute"


def test_equal_objects_and_those_of_production_alone_are_kept_and_newer_ones_are_a_conflict(three: Migration) -> None:
    three.production.put("f1", b"v1")
    three.legacy.delete("f2")
    three.production.put("f2", b"written by the application")
    wait_for_next_second()
    three.production.put("f3", b"written by the application")
    make_pass(three)
    (batch,) = three.batches()
    assert (batch["migrated"], batch["kept"], batch["conflict"], batch["bytes"]) == (0, 2, 1, 0)
    assert three.failure_of(3)[0] == "conflict"
    assert read_production(three, 3) == ["v1", *["written by the application"] * 2]


def test_a_row_that_goes_meanwhile_is_not_missing(staying: Migration) -> None:
    add_file(staying, 1)
    staying.legacy.delete("f1")
    staying.enqueue()
    with staying.at_work() as take_turn:
        staying.execute("delete from public.files")
        take_turn()
    assert staying.statuses() == {"DONE"}


def test_the_status_counts_rows_that_stay_as_such(staying: Migration) -> None:
    add_file(staying, 1)
    staying.execute("insert into public.files values (2, null, now())")
    staying.write_plan()
    make_pass(staying)
    done = staying.run("status", "--no-objects")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["legacy", "production", "stay", "unexpected", "total"] in lines
    assert ["entries", "public.files.path", "0", "0", "1", "1", "2"] in lines
    document = json.loads(staying.run("status", "--no-objects", "--json").stdout)
    assert document["entries"] == {"legacy": 0, "production": 0, "unexpected": 1, "stay": 1, "total": 2}


def test_migrate_makes_one_pass_and_a_report_of_several_counts_entries_again(staying: Migration) -> None:
    for number in (1, 2, 3):
        add_file(staying, number, changed=None)
    staying.write_plan()
    done = well(staying.run_here(*MIGRATE))
    assert "Pass 1: 3 entries in 1 new batch" in done.stdout
    assert "object copied\n" in done.stdout
    assert not [words for words in ("Pass 2", "row updated", "rows updated") if words in done.stdout]
    words = "  of several passes: an entry may count more than once\n"
    assert words not in well(staying.run("report")).stdout
    make_pass(staying)
    done = staying.run("report")
    lines = [line.split()[:2] for line in done.stdout.splitlines()]
    assert all(line in lines for line in (["entries", "6"], ["migrated", "3"], ["kept", "3"], ["sum", "6"]))
    assert words in done.stdout
    (table,) = json.loads(staying.run("report", "--json").stdout)["tables"]
    assert (table["entries"], table["is_repeated"], table["balances"]) == (6, True, True)


def test_a_pass_that_takes_up_errors_again_counts_from_zero_and_what_is_left_is_shown_once(three: Migration) -> None:
    three.legacy.delete("f2")
    three.write_plan()
    assert three.run_here(*MIGRATE).returncode == 1
    done = three.run_here(*MIGRATE)
    assert done.returncode == 1
    lines = [line.split()[:2] for line in done.stdout.splitlines()]
    assert [line for line in lines if line and line[0] in {"kept", "missing"}][-2:] == [["kept", "2"], ["missing", "1"]]
    assert ["entries", "3"] in lines
    assert "-" not in "".join(line for line in done.stdout.splitlines() if line.startswith("Progress"))
    assert three.run("errors").stdout.startswith("missing: NoSuchKey  (1 entry in 1 batch of avatars")
    (entry,) = json.loads(three.run("errors", "--entries", "--json").stdout)
    assert (entry["entries"], entry["key"], entry["outcome"]) == ("public.files.path", "f2", "missing")
    watch = three.run_here("watch", "--once").stdout
    assert "66% 2 / 3" in watch
    assert "kept 2 · missing 1" in watch
    three.legacy.put("f2", b"v1")
    make_pass(three)
    assert three.run("errors").stdout == "No batch is in ERROR.\n"
    assert "missing" not in three.run_here("watch", "--once").stdout


class Application:
    """Adds, replaces and touches files, in transactions of different lengths, until it is told to stop."""

    def __init__(self, migration: Migration) -> None:
        """Work on the migration's table and legacy bucket."""
        self.migration = migration
        self.bodies: dict[int, str] = {}
        self.stopping = Event()
        self.acted = 0

    def run(self) -> None:
        with psycopg.connect(self.migration.dsn) as connection:
            while not self.stopping.is_set():
                self.act(connection)
                connection.commit()

    def act(self, connection: psycopg.Connection[Any]) -> None:
        """Begin a transaction, whose start the rows bear, and commit it a while later."""
        connection.execute("select now()")
        for _ in range(3):
            new = self.acted % 2 == 0
            number = 1000 + self.acted if new else 1 + self.acted % 40
            self.bodies[number] = f"version {self.acted}"
            self.migration.legacy.put(f"f{number}", self.bodies[number].encode())
            connection.execute(
                "insert into public.files values (%s, %s, now()) on conflict (id) do update set updated_at = now()",
                (number, f"f{number}"),
            )
            self.acted += 1
        self.stopping.wait(0.05 * (self.acted % 7))

    def find_stale(self) -> set[int]:
        """Return the files whose newest version is not in production."""
        read = self.migration.production.read
        return {number for number, body in self.bodies.items() if read(f"f{number}") != body.encode()}


def test_after_the_last_pass_production_has_the_newest_of_all(staying: Migration) -> None:
    """Passes follow each other without the margin: the application's clock and the database's are one here."""
    (file,) = [path for path in list_sql("functions") if path.stem == "begin_pass"]
    text = file.read_text()
    margin = "v_margin constant interval := '1 minute'"
    assert margin in text
    staying.execute(text.replace(margin, margin.replace("1 minute", "0")).replace("%", "%%"), ())
    application = Application(staying)
    for number in range(1, 41):
        add_file(staying, number)
        application.bodies[number] = "v1"
    with ThreadPoolExecutor(1) as pool, staying.workers(2, "--parallel", "8") as workers:
        running = pool.submit(application.run)
        try:
            for killed in (0, 1, None, None):
                staying.enqueue(7)
                if killed is not None:
                    workers[killed].kill()
                    log = staying.folder / f"after-{killed}.log"
                    workers[killed] = WorkerProcess(["--parallel", "8"], dict(os.environ), log)
                staying.wait_until_done()
            wait_for(lambda: application.acted > 20 or running.done())
        finally:
            application.stopping.set()
        running.result(100)
        staying.enqueue(7)
        staying.wait_until_done()
    conflicts = {int(failure["entry_id"]) for failure in staying.failures() if failure["outcome"] == "conflict"}
    assert application.find_stale() <= conflicts  # replaced within the second of its copy: a person decides
    staying.check_balance()
    # Before the application is switched, the legacy object is the right one.
    make_pass(staying, on_conflict="overwrite")
    assert application.find_stale() == set()
    assert staying.statuses() == {"DONE"}
