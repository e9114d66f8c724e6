"""`rowferry plan --discover` says what it has not looked at, and why."""

import psycopg
import pytest

from rowferry_cli.discover.evidence import bucket
from support.entries.discovering import Discovering, on_moto


@pytest.fixture
def photos(found: Discovering) -> Discovering:
    """Ten rows that name objects."""
    found.execute("create table photos (id bigint primary key, path text)")
    found.insert("photos", [(n, f"image/{n}.png") for n in range(10)])
    found.put(*[f"image/{n}.png" for n in range(10)])
    return found


def read_plan(found: Discovering) -> str:
    return found.plan_path.read_text().replace("\n# ", " ")


def test_a_locked_table_is_told(photos: Discovering) -> None:
    photos.execute("create table files (id bigint primary key, path text)")
    with psycopg.connect(photos.dsn) as holding:
        holding.execute("lock table public.files in access exclusive mode")
        assert photos.discover(ROWFERRY_LOCK_TIMEOUT="1s").returncode == 0
    assert "Not looked at: public.files.path, since it took too long or the table was locked" in read_plan(photos)


def test_more_folders_than_are_listed_are_told(photos: Discovering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "MAX_LISTED", 0)
    photos.put(*[f"more/part{n}/inner{m}/x.bin" for n in range(20) for m in range(10)])
    assert photos.discover().returncode == 0
    assert "Not looked at: folders of the bucket beyond the first 150 that were listed" in read_plan(photos)


@on_moto
def test_nothing_is_told_where_all_was_looked_at(photos: Discovering) -> None:
    assert photos.discover().returncode == 0
    assert "Not looked at" not in read_plan(photos)
