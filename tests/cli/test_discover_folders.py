"""`rowferry plan --discover` finds columns that name folders; it proposes [[objects]] for those that no entry names."""

import tomllib
from typing import Any

import pytest

from support.entries.discovering import Discovering, on_moto
from support.processes.cli import well
from support.queue.workers_here import run_here

FILES = ("model/MLmodel", "model/data/weights.bin", "plot.png")


def add_runs(found: Discovering, text: str, runs: int = 12, *, empty: int = 0) -> None:
    """Add runs whose texts name folders with the artifacts of each; the last ones have none."""
    found.execute("create table runs (run_uuid text primary key, artifact_uri text)")
    found.insert("runs", [(f"r{n}", text.format(n=n, bucket=found.legacy.bucket)) for n in range(runs)])
    found.put(*[f"mlflow/{n}/artifacts/{name}" for n in range(runs - empty) for name in FILES])


def read_document(found: Discovering) -> dict[str, Any]:
    return tomllib.loads(found.plan_path.read_text())


def check(found: Discovering) -> str:
    return well(found.run("check")).stdout


@on_moto
@pytest.mark.parametrize("end", ["", "/"])
def test_urls_that_name_folders_are_proposed_and_check_passes(found: Discovering, end: str) -> None:
    add_runs(found, "s3://{bucket}/mlflow/{n}/artifacts" + end)
    (entries,) = found.find_entries(production=found.production.bucket)
    assert (entries["names"], entries["from"]) == ("folder", f"s3://{found.legacy.bucket}/")
    assert entries["to"] == f"s3://{found.production.bucket}/"
    assert "may_be_empty" not in entries
    assert "12 of 12 sampled rows name folders with objects" in found.read_notes()
    assert "objects" not in read_document(found)
    assert "12 of 12 sampled folders hold objects" in check(found)


def test_rows_with_empty_folders_move_as_well(found: Discovering) -> None:
    add_runs(found, "s3://{bucket}/mlflow/{n}/artifacts", empty=3)
    (entries,) = found.find_entries(production=found.production.bucket)
    assert entries["may_be_empty"] is True
    assert "9 of 12 sampled rows name folders with objects" in found.read_notes()
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
    assert "public.runs.artifact_uri: the texts name folders, such as 'mlflow/0/artifacts/'" in found.read_notes()


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
    found.make("pictures", "url text", [(n, f"s3://{found.legacy.bucket}/pictures/{n}") for n in range(12)])
    found.put(*[f"pictures/{n}" for n in originals])
    found.put(*[f"pictures/{n}/{size}" for n in with_smaller for size in (200, 400)])
    assert "names = " not in found.discover("--json").stdout


def test_a_folder_of_one_object_each_is_no_folder_that_a_row_names(found: Discovering) -> None:
    found.make("files", "folder text, name text", [(n, f"up/{n:06d}f", f"n{n}.png") for n in range(100, 140)])
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


@pytest.fixture
def photos(found: Discovering) -> Discovering:
    """Rows that name all objects of one folder, and a folder that no row names."""
    found.make("photos", "path text", [(n, f"image/{n}.png") for n in range(10)])
    found.put(*[f"image/{n}.png" for n in range(10)], *[f"lfs/{n}" for n in range(5)])
    return found


def read_objects(found: Discovering) -> list[dict[str, str]]:
    return tomllib.loads(found.plan_path.read_text()).get("objects", [])


def test_a_folder_that_no_entry_names_is_proposed(photos: Discovering) -> None:
    done = well(photos.discover())
    assert read_objects(photos) == [{"prefix": "lfs/"}]
    assert "# No row names these objects, as far as was seen: lfs/: 5." in photos.plan_path.read_text()
    words = "Without the 1 [[objects]] in the plan, the plan covers a part of the legacy bucket"
    assert words in done.stdout
    assert "names 5 of 15 objects (33%), in lfs/: 5." in done.stdout


def test_a_folder_that_is_named_in_part_is_a_comment(photos: Discovering) -> None:
    photos.put(*[f"image/{n}_small.png" for n in range(10)])
    assert photos.discover().returncode == 0
    assert read_objects(photos) == [{"prefix": "lfs/"}]
    text = photos.plan_path.read_text()
    assert 'image/: 10 of 20. They stay behind, unless this is no comment.\n# [[objects]]\n# prefix = "image/"' in text


def test_what_lies_beside_the_objects_of_rows_is_taken_along(photos: Discovering) -> None:
    """Playlists beside a video, sizes beside a picture: each in a folder of its row."""
    photos.make("videos", "path text", [(n, f"hls/{n}/master.m3u8") for n in range(10)])
    photos.put(*[f"hls/{n}/{name}" for n in range(10) for name in ("master.m3u8", "480.m3u8", "720.m3u8")])
    assert photos.discover().returncode == 0
    assert read_objects(photos) == [{"prefix": "hls/"}, {"prefix": "lfs/"}]
    assert "hls/: 20 of 30. They are copied without a row." in photos.plan_path.read_text()


def test_nothing_is_proposed_where_rows_name_all(photos: Discovering) -> None:
    for number in range(5):
        photos.legacy.delete(f"lfs/{number}")
    done = photos.discover()
    assert read_objects(photos) == []
    assert "covers a part" not in done.stdout


def test_a_search_of_some_columns_proposes_no_folders(photos: Discovering) -> None:
    assert photos.discover("photos.path").returncode == 0
    assert read_objects(photos) == []


@on_moto
def test_what_is_proposed_passes_check_and_is_migrated(photos: Discovering) -> None:
    assert photos.discover().returncode == 0
    text = photos.plan_path.read_text().replace("new-media", photos.production.bucket)
    photos.plan_path.write_text(text)
    assert "covers a part" not in well(photos.run("check")).stdout
    well(run_here(photos.folder, "migrate", "--yes", **photos.environment))
    moved = {key: photos.production.read(key) for key in photos.production.listing()}
    assert moved == {key: photos.legacy.read(key) for key in photos.legacy.listing()}
    assert len(moved) == 15


def test_where_no_column_names_an_object_the_folders_are_proposed(photos: Discovering) -> None:
    photos.execute("update photos set path = 'elsewhere'")
    done = well(photos.discover())
    assert "No column of this database names an object in legacy-" in done.stdout
    assert "Objects by folder: image/: 10, lfs/: 5." in done.stdout
    assert read_objects(photos) == [{"prefix": "image/"}, {"prefix": "lfs/"}]
    assert "No column was found that names an object, so these are copied" in photos.plan_path.read_text()


def test_where_no_text_could_be_a_key_nothing_is_written(photos: Discovering) -> None:
    """It is another database, perhaps, or an empty one."""
    photos.execute("delete from photos")
    done = photos.discover()
    assert (done.returncode, photos.plan_path.exists()) == (2, False)
    assert "see that --legacy and DATABASE_URL belong together" in done.stderr
    assert "Objects of the bucket by folder: image/: 10, lfs/: 5." in done.stderr


def test_what_check_refuses_leaves_a_plan_that_passes(photos: Discovering) -> None:
    photos.execute("create table more () inherits (photos)")
    assert photos.discover().returncode == 0
    assert "rowferry check` refuses this" in photos.plan_path.read_text()
    assert read_objects(photos) == [{"prefix": "image/"}, {"prefix": "lfs/"}]
