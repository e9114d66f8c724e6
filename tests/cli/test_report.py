"""`rowferry report`: entries are the sum of their outcomes; the manifest names those that were not migrated or kept."""

import io
import json
from collections import Counter
from typing import Any

import pytest

from rowferry.db.connection import connect
from rowferry_cli.report import data as accounts
from rowferry_cli.report.data import COUNTED, Report
from support.entries.entry_table import EntryTable
from support.entries.migration import Migration
from support.processes.cli import well
from support.queue.queue_runs import revert, verify
from support.queue.reports import read_report


def read(dsn_is_set: EntryTable, name: str = "avatars") -> tuple[Report, list[dict[str, Any]]]:
    """Return the account and the lines of the manifest."""
    manifest = io.StringIO()
    with connect("report", autocommit=True) as connection:
        account, count = read_report(connection, name, manifest)
    lines = [json.loads(line) for line in manifest.getvalue().splitlines()]
    assert len(lines) == count
    return account, lines


def check_manifest(account: Report, lines: list[dict[str, Any]]) -> None:
    """Hold the lines against the account: outcome by outcome, table by table, queue by queue."""
    told: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        told[line["queue"], line["entries_of"], line["outcome"]] += line["entries"]
    expected: Counter[tuple[str, str, str]] = Counter()
    for table in account.tables:
        for outcome in set(COUNTED) - {"migrated", "kept"}:
            if table[outcome]:
                expected[table["queue"], table["label"], outcome] = table[outcome]
    assert told == expected
    assert account.balances


def test_entries_are_the_sum_of_the_outcomes_and_the_manifest_names_each_and_why(
    eventful: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, lines = read(eventful)
    assert [(table["queue"], table["label"]) for table in account.tables] == [
        ("migrate", "public.avatars.path"),
        ("verify", "public.avatars.path"),
    ]
    moved, verified = account.tables
    names = ("entries", "migrated", "missing", "conflict", "failed", "waiting", "attempts")
    assert [moved[name] for name in names] == [13, 7, 1, 1, 2, 2, 3]
    assert (verified["kept"], verified["missing"]) == (6, 1)
    check_manifest(account, lines)
    assert not account.settled
    by_outcome = {line["outcome"]: line for line in lines if line["queue"] == "migrate"}
    lost = by_outcome["missing"]
    assert (lost["id"], lost["key"], lost["status"], lost["attempt"]) == ("8", "image/lost.png", "ERROR", 1)
    assert lost["failed_at"]
    assert by_outcome["conflict"]["key"] == "image/other.png"
    whole = by_outcome["failed"]
    assert (whole["entries"], whole["first"], whole["last"], whole["error"]) == (2, "21", "22", "it was too much")
    waiting = by_outcome["waiting"]
    assert (waiting["entries"], waiting["first"], waiting["last"], waiting["status"]) == (1, "23", "23", "INIT")
    assert [line["id"] for line in lines if line["queue"] == "verify"] == ["2"]
    monkeypatch.setattr(accounts, "FETCHED_AT_ONCE", 1)
    assert read(eventful)[1] == lines, "however it is fetched"


def test_what_is_only_tried_again_is_told_once_as_waiting(migration: Migration) -> None:
    """A batch between two attempts has failures by entry that may still pass."""
    migration.given(3).work()
    migration.execute("update rowferry.batch_queue set status = 'INIT', migrated = 1, failed = 1, missing = 1")
    migration.execute(
        "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt) "
        "select id, '2', 'k', 'failed', 'r', 'e', 1 from rowferry.batch_queue"
    )
    account, lines = read(migration)
    check_manifest(account, lines)
    assert [(line["outcome"], line["entries"]) for line in lines] == [("waiting", 2)]


def test_a_parked_batch_is_in_the_manifest(table: EntryTable) -> None:
    """An operator has set two batches to ERROR: one before its first attempt, one between two of them."""
    table.add_legacy(range(6)).enqueue(3)
    table.execute("update rowferry.batch_queue set missing = 1 where id = 2")
    table.execute(
        "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt) "
        "values (2, '4', 'k', 'missing', 'r', 'e', 1)"
    )
    table.execute("update rowferry.batch_queue set status = 'ERROR'")
    account, lines = read(table)
    check_manifest(account, lines)
    assert sorted((line["batch"], line["outcome"], line["entries"]) for line in lines) == [
        (1, "parked", 3),
        (2, "missing", 1),
        (2, "parked", 2),
    ]


def test_parked_batches_are_told_by_themselves(migration: Migration) -> None:
    migration.given(5, 2)
    migration.execute("update rowferry.batch_queue set status = 'ERROR' where status = 'INIT' and entry_count = 2")
    migration.write_plan()
    told = migration.run("report").stdout
    assert "  parked                4\n" in told
    assert "1 of 3 batches waiting or running; 4 entries in 2 batches need an operator." in told
    assert "See why: rowferry errors --migration avatars\n" in told


def test_the_report_says_that_rows_were_put_back_and_are_legacy_again(migration: Migration) -> None:
    migration.fill(3).migrate()
    revert(migration)
    migration.write_plan()
    words = "public.avatars.path: 3 rows reverted, none migrated since: legacy again."
    assert words in migration.run("report").stdout
    migration.migrate()
    assert "reverted, none migrated" not in migration.run("report").stdout


def test_the_report_says_nothing_of_tables_that_it_has_not_looked_at(migration: Migration) -> None:
    migration.fill(3).migrate()
    revert(migration)
    migration.execute("delete from rowferry.batch_queue")
    migration.write_plan()
    done = migration.run("report")
    assert (done.returncode, "All batches" in done.stdout) == (0, False)
    assert "Not begun: Nothing has been enqueued.\n" in done.stdout


def test_queues_come_in_the_order_of_their_chain_each_in_its_own_words(migration: Migration) -> None:
    migration.fill(3).migrate()
    verify(migration)
    # Named so that the alphabet puts it last; no package of that name is installed here.
    migration.execute("update rowferry.batch_queue set queue_name = 'zip' where queue_name = 'migrate'")
    migration.write_plan()
    told = migration.run("report").stdout
    assert told.index("zip: public.avatars.path") < told.index("verify: public.avatars.path")
    assert "  migrated              3\n" in told
    assert "  kept                  3  equal, or readable without a legacy object\n" in told
    assert max(map(len, told.splitlines())) <= 80
    assert "0 bytes" not in told, "nobody told how many the server copied"
    assert "\n\n\n" not in told
    document = json.loads(migration.run("report", "--json").stdout)
    assert [queue["queue"] for queue in document["queues"]] == ["zip", "verify"]
    assert [table["queue"] for table in document["tables"]] == ["zip", "verify"]


def test_the_command_tells_by_its_exit_status(migration: Migration) -> None:
    migration.write_plan()
    assert migration.run("report").returncode == 2
    migration.given(3)
    done = migration.run("report")
    assert (done.returncode, "1 of 1 batch waiting or running" in done.stdout) == (1, True)
    migration.work()
    done = well(migration.run("report", "--manifest", "rest.jsonl"))
    assert "entries               3" in done.stdout
    assert "migrated              3" in done.stdout
    assert "1 batch: 1 DONE, 0 INIT, 0 ERROR · 1 attempt · " in done.stdout
    assert "Done: All batches are done: 3 entries" in done.stdout
    assert "rest.jsonl, 0 lines" in done.stdout
    assert (migration.folder / "rest.jsonl").read_text() == ""


def test_an_operator_needs_no_plan_and_a_manifest_that_cannot_be_written_is_one_sentence(eventful: Migration) -> None:
    eventful.write_plan()
    done = eventful.run("report", "--manifest", "no/such/folder/rest.jsonl")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    done = eventful.run("report", "--migration", "avatars", ROWFERRY_PLAN="/nowhere.toml")
    assert (done.returncode, "Migration avatars" in done.stdout) == (1, True)
