"""`rowferry plan --discover` finds columns that name folders of objects, and takes no ordinary key for one."""

import tomllib
from typing import Any

import pytest

from support.entries.discovering import Discovering, on_moto
from support.processes.cli import well

FILES = ("model/MLmodel", "model/data/weights.bin", "plot.png")


def add_runs(found: Discovering, text: str, runs: int = 12, *, empty: int = 0) -> None:
    """Add runs whose texts name folders with the artifacts of each; the last ones have none."""
    found.execute("create table runs (run_uuid text primary key, artifact_uri text)")
    found.insert("runs", [(f"r{n}", text.format(n=n, bucket=found.legacy.bucket)) for n in range(runs)])
    found.put(*[f"mlflow/{n}/artifacts/{name}" for n in range(runs - empty) for name in FILES])


def read_document(found: Discovering) -> dict[str, Any]:
    return tomllib.loads(found.plan_path.read_text())


def read_notes(found: Discovering) -> str:
    return found.plan_path.read_text().replace("\n# ", " ")


def check(found: Discovering) -> str:
    done = well(found.run("check"))
    return done.stdout


@on_moto
@pytest.mark.parametrize("end", ["", "/"])
def test_urls_that_name_folders_are_proposed_and_check_passes(found: Discovering, end: str) -> None:
    add_runs(found, "s3://{bucket}/mlflow/{n}/artifacts" + end)
    (entries,) = found.find_entries(production=found.production.bucket)
    assert (entries["names"], entries["from"]) == ("folder", f"s3://{found.legacy.bucket}/")
    assert entries["to"] == f"s3://{found.production.bucket}/"
    assert "may_be_empty" not in entries
    assert "12 of 12 sampled rows name folders with objects" in read_notes(found)
    assert "objects" not in read_document(found)
    assert "12 of 12 sampled folders hold objects" in check(found)


def test_rows_with_empty_folders_move_as_well(found: Discovering) -> None:
    add_runs(found, "s3://{bucket}/mlflow/{n}/artifacts", empty=3)
    (entries,) = found.find_entries(production=found.production.bucket)
    assert entries["may_be_empty"] is True
    assert "9 of 12 sampled rows name folders with objects" in read_notes(found)
    check(found)
    assert found.run("migrate", "--yes").returncode == 0
    (moved,) = found.read_texts("select count(*)::text from runs where artifact_uri like 's3://production%%'")
    assert moved == "12"


def test_folders_that_a_console_has_made_are_no_objects(found: Discovering) -> None:
    add_runs(found, "s3://{bucket}/mlflow/{n}/artifacts/")
    found.put(*[f"mlflow/{n}/artifacts/" for n in range(12)])
    (entries,) = found.find_entries()
    assert entries["names"] == "folder"


def test_folders_in_one_another_are_all_proposed(found: Discovering) -> None:
    add_runs(found, "s3://{bucket}/mlflow/{n}/artifacts")
    found.execute("create table models (id bigint primary key, source text, place jsonb)")
    found.execute(
        "insert into models select row_number() over (), artifact_uri || '/model', "
        "jsonb_build_object('dir', artifact_uri) from runs"
    )
    places = {(one["table"], one.get("path")) for one in found.find_entries(production=found.production.bucket)}
    assert places == {("public.runs", None), ("public.models", None), ("public.models", "$.dir")}
    check(found)


def test_paths_that_name_folders_are_told_and_copied_without_rows(found: Discovering) -> None:
    """What names no bucket need not change, and may be anything, such as the name of a project."""
    add_runs(found, "mlflow/{n}/artifacts")
    assert found.discover().returncode == 0
    assert read_document(found)["objects"] == [{"prefix": "mlflow/"}]
    assert "entries" not in read_document(found)
    assert "public.runs.artifact_uri: the texts name folders, such as 'mlflow/0/artifacts/'" in read_notes(found)


PICTURES = {
    "all have objects": (range(12), range(12)),
    "half have lost theirs": (range(0, 12, 2), range(12)),
    "nearly all have lost theirs": (range(1), range(12)),
    "some have smaller versions": (range(12), range(3)),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_keys_that_others_begin_with_are_no_folders(found: Discovering, kind: str) -> None:
    """A picture beside its smaller versions: `x`, `x/200` and `x/400`."""
    originals, with_smaller = PICTURES[kind]
    found.execute("create table pictures (id bigint primary key, url text)")
    found.insert("pictures", [(n, f"s3://{found.legacy.bucket}/pictures/{n}") for n in range(12)])
    found.put(*[f"pictures/{n}" for n in originals])
    found.put(*[f"pictures/{n}/{size}" for n in with_smaller for size in (200, 400)])
    told = found.discover("--json")
    assert "names = " not in told.stdout


def test_a_folder_of_one_object_each_is_no_folder_that_a_row_names(found: Discovering) -> None:
    found.execute("create table files (id bigint primary key, folder text, name text)")
    found.insert("files", [(n, f"up/{n:06d}f", f"n{n}.png") for n in range(100, 140)])
    found.put(*found.read_texts("select folder || '/' || name from files"))
    assert found.discover().returncode == 0
    text = found.plan_path.read_text()
    assert ('prefix = "up/"' in text, "names = " in text) == (True, False)


def test_runs_beyond_the_sample_teach_no_rule(found: Discovering) -> None:
    found.execute("create table runs (run_uuid text primary key, artifact_uri text)")
    uri = f"'s3://{found.legacy.bucket}/mlflow/' || n % 4 || '/' || md5(n::text) || '/artifacts'"
    found.execute(f"insert into runs select md5(n::text), {uri} from generate_series(1, 60) as n")
    found.execute("create table notes (id bigint primary key, run text)")
    found.execute("insert into notes select row_number() over (), run_uuid from runs")
    folders = "select split_part(artifact_uri, '/', 4) || '/' || split_part(artifact_uri, '/', 5) || '/' || run_uuid"
    found.put(*[f"{folder}/artifacts/{name}" for folder in found.read_texts(f"{folders} from runs") for name in FILES])
    (entries,) = found.find_entries("--sample", "10")
    assert entries["table"] == "public.runs"
