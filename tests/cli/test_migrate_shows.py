"""What `rowferry migrate` tells of the data before and after the work, and what it leaves out."""

from collections.abc import Sequence

import pytest

from rowferry_cli.reporter import Reporter
from rowferry_cli.throughput import Throughput
from support.entries.migration import Migration
from support.processes.cli import well

ENTRIES = "public.avatars.path"


def run(migration: Migration, *arguments: str) -> list[list[str]]:
    """Return the words of each line that a whole migration prints."""
    done = well(migration.run_here("migrate", "--yes", "--processes", "1", "--log-file", "it.log", *arguments))
    return [line.split() for line in done.stdout.splitlines()]


@pytest.fixture
def filled(migration: Migration) -> Migration:
    return migration.fill(3).write_plan()


def test_the_data_are_shown_alone_or_before_the_work_and_after_it(filled: Migration) -> None:
    assert ["entries", ENTRIES, "3", "0", "0", "3"] in run(filled, "--status-only")
    assert (filled.batches(), filled.production.listing()) == ([], {})
    assert not [line for line in run(filled, "--dry-run", "--no-objects") if line[:1] == ["objects"]], "not asked for"
    lines = run(filled)
    before, after = (
        lines.index(["entries", ENTRIES, *counts]) for counts in (["3", "0", "0", "3"], ["0", "3", "0", "3"])
    )
    assert before < lines.index(["Legacy", "objects", "are", "only", "read.", "Nothing", "is", "deleted."]) < after
    assert [line for line in lines if line[:1] == ["objects"]] == [["objects", "3", "0", "3"]], "counted once"


def test_a_pause_is_said_even_where_the_table_can_no_longer_be_counted(
    filled: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_the_table(_reporter: Reporter, _chain: Sequence[Throughput]) -> None:
        filled.execute("alter table public.avatars rename path to other")
        filled.execute("update rowferry.migration set paused_at = now(), pause_reason = 'no column path'")

    monkeypatch.setattr(Reporter, "report_end", break_the_table)
    done = filled.run_here("migrate", "--yes", "--processes", "1", "--log-file", "it.log")
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, "paused" in last, "no column path" in last) == (1, True, True), done.stderr


def test_workers_that_cannot_go_on_are_told_of_in_one_sentence(filled: Migration) -> None:
    done = filled.run("migrate", "--yes", "--no-objects", ROWFERRY_ALLOWED_ENDPOINTS="https://s3.example.com")
    assert done.returncode == 2
    assert "rowferry: The workers cannot go on: The legacy bucket" in done.stderr
    assert done.stderr.count("rowferry: ") == 1
    assert done.stdout.splitlines()[-1].startswith("Log: rowferry-avatars-migrate-")
