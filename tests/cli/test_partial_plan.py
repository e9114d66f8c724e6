"""A plan that covers a part of the legacy bucket looks partial on every screen."""

import json

import pytest

from rowferry.db.connection import connect
from rowferry.reports.coverage import Coverage, FolderCoverage, record_coverage
from support.entries.migration import Migration
from support.processes.cli import well

WORDS = "names 3 of 5 objects (60%), in lfs/: 2, packages/: 1. Name these in the plan by [[objects]] or [[entries]]"


@pytest.fixture
def partial(migration: Migration) -> Migration:
    """Two rows with their objects, and three objects that no entry names."""
    migration.fill(2)
    for key in ("lfs/a", "lfs/b", "packages/1"):
        migration.legacy.put(key, b"body")
    return migration.write_plan()


def test_migrate_status_reports_watch_and_the_board_say_what_it_leaves_behind_until_the_plan_is_complete(
    partial: Migration,
) -> None:
    """All but the first read it without S3."""
    done = well(partial.run_here("migrate", "--yes"))
    assert done.stdout.count("names 3 of 5 objects (60%)") == 2
    assert "State: done, for a part of the legacy bucket" in done.stdout
    shown = partial.run_here("status", "--no-objects").stdout
    assert WORDS in shown
    assert "State: done, for a part of the legacy bucket" in shown
    assert WORDS in partial.run_here("report").stdout
    for command in ("status", "report"):
        found = json.loads(partial.run_here(command, "--json").stdout)["left_behind"]
        assert [(one["folder"], one["objects"], one["unnamed"]) for one in found] == [
            ("lfs/", 2, 2),
            ("packages/", 1, 1),
        ]
    assert partial.run_here("report", "--html", "report.html").returncode == 0
    page = (partial.folder / "report.html").read_text(encoding="utf-8")
    assert "Done in part" in page
    assert "names 3 of 5 objects (60%)" in page
    assert "Stays behind: 3 of 5 objects (60%), in lfs/, packages/" in partial.run_here("watch", "--once").stdout
    (row,) = partial.execute("select left_behind, what_to_do from rowferry.migration_state")
    assert row["left_behind"] == 3
    assert row["what_to_do"] == "It was a part of the bucket; what the plan leaves out: rowferry status"
    partial.plan["objects"] = [{"prefix": "lfs/"}, {"prefix": "packages/"}]
    partial.write_plan()
    assert partial.run_here("check", "--allow-empty").returncode == 0
    assert "covers a part" not in partial.run_here("status").stdout


def test_few_objects_that_deleted_rows_have_left_are_no_part(partial: Migration) -> None:
    folders = [FolderCoverage("a/", 1000, 99), FolderCoverage("b/", 10, 1), FolderCoverage("c/", 5, 0)]
    assert partial.run_here("migrate", "--yes").returncode == 0
    with connect("test", autocommit=True) as connection:
        record_coverage(connection, "avatars", Coverage(folders))
    assert Coverage(folders).left == folders[1:2]
    assert partial.execute("select left_behind from rowferry.migration_state") == [{"left_behind": 1}]


def test_a_dry_run_records_nothing(partial: Migration) -> None:
    assert "names 3 of 5 objects (60%)" in partial.run_here("migrate", "--dry-run").stdout
    assert partial.execute("select * from rowferry.coverage") == []


def test_the_end_of_a_cutover_says_it_too(partial: Migration) -> None:
    partial.plan["entries"][0] |= {"to": "image/", "rows": "stay"}
    partial.write_plan()
    assert partial.run_here("check").returncode == 0
    assert partial.run_here("cutover", "--yes").returncode == 0
    done = well(partial.run_here("cutover", "--finish", "--yes"))
    assert "every object stands in" in done.stdout
    assert WORDS in done.stdout
