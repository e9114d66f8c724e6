"""The status counts every entry in exactly one form, and what it shows is what is there."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from rowferry.batch import Outcome
from rowferry.db.connection import connect
from rowferry.errors import UsageError
from rowferry_cli.status.counts import ObjectCount
from rowferry_cli.status.data import DataStatus, read_data_status
from rowferry_cli.status.tables import print_data_status
from support.entries.entry_table import TO, EntryTable
from support.entries.migration import Migration
from support.processes.cli import assert_went_well, well
from support.queue.queue_runs import verify
from support.s3.request_log import RequestLog


def read(table: EntryTable, **more: Any) -> DataStatus:
    with connect("status", autocommit=True) as connection:
        return read_data_status(connection, table.read_plan(), **more)


def read_rows(table: EntryTable) -> DataStatus:
    return read(table, count_objects=False)


def show(status: DataStatus, *, terminal: bool = False) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=100)
    print_data_status(status, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_entries_are_counted_by_the_form_of_their_key_within_the_condition(table: EntryTable) -> None:
    table.insert({"1": "image/1", "2": "image/2", "3": "avatar/3", "4": "other/4", "5": None})
    (counts,) = read_rows(table).tables
    assert [counts[form] for form in ("legacy", "production", "unexpected", "total")] == [2, 1, 2, 5]
    table.plan["entries"][0]["where"] = "id > 1"
    assert read_rows(table).entries["total"] == 4


def test_several_tables_are_counted_one_by_one_and_together(table: EntryTable) -> None:
    table.execute("create table public.banners (id bigint primary key, path text)")
    table.plan["entries"].append({**table.plan["entries"][0], "table": "public.banners"})
    table.insert({"1": "image/1"})
    table.execute("insert into public.banners values (1, 'image/1'), (2, 'avatar/2')")
    status = read_rows(table)
    assert [counts["total"] for counts in status.tables] == [1, 2]
    assert (status.entries["legacy"], status.entries["production"]) == (2, 1)
    assert "all entries" in show(status)


def test_objects_of_both_buckets_are_counted_and_nothing_is_written(any_migration: Migration) -> None:
    any_migration.fill(3)
    any_migration.production.put("avatar/x", b"x")
    before = any_migration.legacy.listing(), any_migration.production.listing()
    heard: list[str] = []
    assert read(any_migration, on_progress=heard.append).objects == {
        "legacy": ObjectCount(3),
        "production": ObjectCount(1),
    }
    assert "counting entries" in heard
    assert (any_migration.legacy.listing(), any_migration.production.listing()) == before
    assert any_migration.batches() == []


def test_without_the_listing_no_bucket_is_asked(migration: Migration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROWFERRY_LEGACY_ACCESS_KEY_ID")
    migration.plan["production"]["endpoint_url"] = "http://127.0.0.1:1"
    assert read_rows(migration).objects is None


def test_a_bucket_that_cannot_be_listed_is_named_and_a_table_that_is_missing_before_it(migration: Migration) -> None:
    migration.plan["production"]["bucket"] = "there-is-none"
    with pytest.raises(UsageError, match="objects of the production bucket there-is-none cannot be counted"):
        read(migration)
    migration.plan["entries"][0]["table"] = "public.nowhere"
    with pytest.raises(UsageError, match=r"no table public\.nowhere"):
        read(migration)


def test_batches_are_zero_and_init_is_named_while_there_is_no_schema(table: EntryTable) -> None:
    table.execute("drop schema rowferry cascade")
    status = read_rows(table)
    assert not status.initialised
    assert status.queues == ()
    assert "rowferry init" in show(status)


def test_queues_are_shown_one_by_one_and_never_added_up(migration: Migration) -> None:
    migration.fill(5).migrate()
    verify(migration)
    status = read_rows(migration)
    assert [(row["queue"], row["migrated"] + row["kept"]) for row in status.queues] == [("migrate", 5), ("verify", 5)]
    lines = [line.split() for line in show(status).splitlines()]
    assert ["migrate", "0", "1", "0", "5", "0", "0", "done"] in lines
    assert ["verify", "0", "1", "0", "5", "0", "0", "done"] in lines
    assert "10" not in show(status)
    assert "all queues are done" in show(status)


def test_one_queue_is_shown_by_outcome(migration: Migration) -> None:
    migration.fill(5).migrate()
    verify(migration)
    migration.write_plan()
    shown = migration.run("status", "--no-objects", "--queue", "verify").stdout
    assert "Batches and entries of migration avatars, in the queue verify" in shown
    assert ["kept", "5"] in [line.split() for line in shown.splitlines()]
    refused = migration.run("status", "--no-objects", "--queue", "tgas")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "rowferry: Migration avatars has no queue 'tgas'; it has migrate, verify.\n"


def test_the_command_prints_plain_columns_without_a_terminal(migration: Migration) -> None:
    migration.fill(2).write_plan()
    done = migration.run("status")
    assert_went_well(done)
    assert "\x1b" not in done.stdout
    assert "│" not in done.stdout
    assert ["entries", "public.avatars.path", "2", "0", "0", "2"] in [line.split() for line in done.stdout.splitlines()]
    assert ["objects", "2", "0", "2"] in [line.split() for line in done.stdout.splitlines()]


def test_json_has_every_number_and_null_for_objects_that_were_not_counted(migration: Migration) -> None:
    migration.given(2, batch_size=1).write_plan()
    document = json.loads(migration.run("status", "--json").stdout)
    assert document["objects"] == {"legacy": 2, "production": 0}
    assert document["entries"] == {"legacy": 2, "production": 0, "unexpected": 0, "stay": 0, "total": 2}
    assert document["tables"] == [document["entries"] | {"label": "public.avatars.path"}]
    (queue,) = document["queues"]
    assert (queue["queue"], document["state"]) == ("migrate", "no_workers")
    assert [queue[name] for name in ("batches_init", "batches_done", "batches", "waiting")] == [2, 0, 2, 2]
    assert set(queue) > set(Outcome)
    assert json.loads(migration.run("status", "--json", "--no-objects").stdout)["objects"] is None


def test_a_long_listing_is_broken_off_and_told_as_at_least(
    migration: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.fill(2)
    monkeypatch.setattr("rowferry_cli.status.counts.WITHIN", timedelta(seconds=-1))
    migration.write_plan()
    shown = migration.run("status").stdout
    assert ["objects", "≥", "2", "≥", "0", "≥", "2"] in [line.split() for line in shown.splitlines()]
    assert json.loads(migration.run("status", "--json").stdout)["objects_complete"] is False
    assert ["objects", "2", "0", "2"] in [
        line.split() for line in migration.run("status", "--objects").stdout.splitlines()
    ]


def test_migrate_does_not_refuse_to_start_over_a_listing(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(2).write_plan()
    with log.refusing(lambda seen: "list-type" in seen.query, 403, "AccessDenied"):
        done = well(logged_migration.run_here("migrate", "--yes"))
    assert "Objects are not counted" in done.stdout
    logged_migration.audit()


def test_objects_are_not_counted_again_after_a_migration(logged_migration: Migration, log: RequestLog) -> None:
    logged_migration.fill(2).write_plan()
    well(logged_migration.run_here("migrate", "--yes"))
    listed = [place for place, seen in enumerate(log.seen) if "list-type" in seen.query]
    copied = [place for place, seen in enumerate(log.seen) if seen.writes_object and seen.key.startswith(TO)]
    assert min(listed) < min(copied)
    after = [place for place in listed if place > min(copied)]
    assert len(after) == 1, "only what was rewritten meanwhile is looked for, in one page"
    assert after[0] > max(copied)
