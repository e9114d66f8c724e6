"""`rowferry plan --discover` proposes [[objects]] for folders that no entry names."""

import tomllib

import pytest

from support.entries.discovering import Discovering, on_moto
from support.processes.cli import well
from support.queue.workers_here import run_here


@pytest.fixture
def photos(found: Discovering) -> Discovering:
    """Rows that name all objects of one folder, and a folder that no row names."""
    found.execute("create table photos (id bigint primary key, path text)")
    found.insert("photos", [(n, f"image/{n}.png") for n in range(10)])
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
    photos.execute("create table videos (id bigint primary key, path text)")
    photos.insert("videos", [(n, f"hls/{n}/master.m3u8") for n in range(10)])
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
    checked = well(photos.run("check"))
    assert "covers a part" not in checked.stdout
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
