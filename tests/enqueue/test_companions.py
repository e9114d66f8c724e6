"""[[objects]] in a folder whose rows move are named by `rowferry check`, with the command that copies them first."""

import shlex

from support.entries.checks import check
from support.entries.entry_table import FROM
from support.entries.migration import Migration
from support.processes.cli import well


def notes(migration: Migration) -> list[str]:
    return [finding.remedy for finding in check(migration) if "may move before them" in finding.what]


def test_objects_beside_those_of_rows_are_copied_first_by_the_command_that_check_names(migration: Migration) -> None:
    migration.fill(3)
    for name in ("u1/index.m3u8", "u2/index.m3u8"):
        migration.legacy.put(f"image/{name}", name.encode())
    migration.legacy.put("exports/a.csv", b"a")
    migration.plan["objects"] = [{"prefix": "image/", "name": "lists"}, {"prefix": "exports/"}]
    (remedy,) = notes(migration)
    command = remedy.partition("`rowferry ")[2].partition("`")[0]
    assert command == "run migrate --table lists"
    migration.write_plan()
    well(migration.run_here(*shlex.split(command), "--yes"))
    assert migration.production.read("image/u1/index.m3u8") == b"u1/index.m3u8"
    assert all((text or "").startswith(FROM) for text in migration.rows().values())


def test_objects_elsewhere_and_rows_that_stay_need_no_order(migration: Migration) -> None:
    migration.fill(3)
    migration.plan["objects"] = [{"prefix": "exports/"}]
    assert notes(migration) == []
