"""A plan with rows that move and rows that stay: each command treats each entry by its kind, and says so."""

import json

import pytest

from support.entries.files import LONG_AGO, add_file
from support.entries.listed_objects import name_objects
from support.entries.migration import Migration
from support.entries.runs import LEGACY, PRODUCTION, Runs
from support.processes.cli import refused, well
from support.queue.queue_runs import outcomes, verify


@pytest.fixture
def mixed(migration: Migration) -> Migration:
    """Four rows that move, three files whose rows stay, and two objects without rows; all migrated."""
    migration.fill(4)
    migration.execute("create table public.files (id bigint primary key, path text, updated_at timestamptz)")
    files = {"table": "public.files", "id": "id", "key": "path", "from": "", "to": "", "rows": "stay"}
    for number in range(1, 4):
        add_file(migration, number, changed=LONG_AGO)
    migration.legacy.put("variants/a", b"a")
    entries = [*migration.plan["entries"], {**files, "changed": "updated_at"}]
    name_objects(migration, "variants/", None)
    migration.plan["entries"] = entries
    migration.migrate()
    return migration.write_plan()


def test_revert_takes_the_rows_that_move_and_names_the_others(mixed: Migration) -> None:
    assert set(mixed.rows().values()) == {f"avatar/u{number}/me.png" for number in range(1, 5)}
    done = well(mixed.run_here("revert", "--yes"))
    assert "public.files.path: its rows stay as they are, so they are not reverted" in done.stdout
    assert "variants/*: no row names these objects, so they are not reverted" in done.stdout
    assert f"point the application at the legacy bucket {mixed.legacy.bucket} again for these" in done.stdout
    assert set(mixed.rows().values()) == {f"image/u{number}/me.png" for number in range(1, 5)}
    (batch,) = [batch for batch in mixed.batches() if batch["queue_name"] == "revert"]
    assert outcomes([batch]) == {"migrated": 4}
    assert mixed.migrate()["migrated"] >= 4
    assert mixed.run_here("run", "revert", "--yes").returncode == 0, "by the name of its queue"
    assert set(mixed.rows().values()) == {f"image/u{number}/me.png" for number in range(1, 5)}


@pytest.mark.parametrize("command", [["revert"], ["run", "revert"]])
def test_a_table_whose_rows_stay_cannot_be_reverted_by_itself(mixed: Migration, command: list[str]) -> None:
    said = refused(mixed.run_here(*command, "--yes", "--table", "public.files"))
    assert "No row moves with the objects of public.files.path" in said
    assert "--table" in said


def test_verify_reports_and_cutover_treat_each_kind_in_its_own_words(mixed: Migration) -> None:
    verified = verify(mixed)
    assert sum(batch["kept"] for batch in verified) == 4 + 3 + 1
    mixed.check_balance()
    blocks = mixed.run_here("report").stdout.split("\nmigrate: ")
    by_label = {block.split("\n")[0]: block for block in blocks[1:]}
    assert "object copied, row updated" in by_label["public.avatars.path"]
    for label in ("public.files.path", "variants/*"):
        assert "object copied, row updated" not in by_label[label]
        assert "object copied" in by_label[label]
    tables = json.loads(mixed.run_here("report", "--json").stdout)["tables"]
    assert {table["label"]: table["rows"] for table in tables} == {
        "public.avatars.path": "move",
        "public.files.path": "stay",
        "variants/*": "none",
    }
    assert mixed.run_here("report", "--html", "report.html").returncode == 0
    page = (mixed.folder / "report.html").read_text(encoding="utf-8")
    assert "public.files.path (rows stay)" in page
    assert "variants/* (no rows)" in page
    assert "public.avatars.path (" not in page
    done = well(mixed.run_here("cutover", "--yes"))
    assert "The rows of public.avatars.path say where each object is, and need no switch." in done.stdout
    assert "The switch is for public.files.path, variants/*." in done.stdout


@pytest.fixture
def with_folders(migration: Migration) -> Migration:
    """Three rows that name folders, and two files whose rows stay; all migrated."""
    migration.execute("create table public.files (id bigint primary key, path text, updated_at timestamptz)")
    for number in range(1, 3):
        add_file(migration, number, changed=LONG_AGO)
    runs = Runs(migration)
    for run in "abc":
        runs.add(run, ["MLmodel", "model/weights.bin"])
    files = {"table": "public.files", "id": "id", "key": "path", "from": "", "to": "", "rows": "stay"}
    migration.plan["entries"].append({**files, "changed": "updated_at"})
    migration.migrate()
    migration.write_plan()
    runs.audit()
    return migration


def read_places(migration: Migration) -> list[str]:
    return [row["artifact_uri"] for row in migration.execute("select artifact_uri from public.runs order by 1")]


def test_revert_takes_rows_that_name_folders_and_leaves_those_that_stay(with_folders: Migration) -> None:
    done = well(with_folders.run_here("revert", "--yes"))
    assert "public.files.path: its rows stay as they are, so they are not reverted" in done.stdout
    assert read_places(with_folders) == [f"{LEGACY}0/{run}/artifacts" for run in "abc"]


def test_verify_compares_folders_beside_rows_that_stay(with_folders: Migration) -> None:
    assert sum(batch["kept"] for batch in verify(with_folders)) == 3 + 2
    with_folders.production.delete("mlflow/0/a/artifacts/MLmodel")
    assert outcomes(verify(with_folders))["missing"] == 1


def test_cutover_and_report_treat_folders_as_rows_that_move(with_folders: Migration) -> None:
    done = well(with_folders.run_here("cutover", "--yes"))
    assert "The rows of public.runs.artifact_uri say where each object is, and need no switch." in done.stdout
    assert "The switch is for public.files.path." in done.stdout
    assert read_places(with_folders) == [f"{PRODUCTION}0/{run}/artifacts" for run in "abc"]
    tables = json.loads(with_folders.run_here("report", "--json").stdout)["tables"]
    kinds = {table["label"]: table["rows"] for table in tables}
    assert kinds == {"public.runs.artifact_uri": "move", "public.files.path": "stay"}
