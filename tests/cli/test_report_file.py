"""The file of `rowferry report --html`: links, pipes and modes stay; a name of no file is refused."""

import os
import subprocess
from pathlib import Path

import pytest

from support.entries.migration import Migration
from support.processes.cli import refused
from support.screens.report_pages import write_page


def test_a_link_stays_a_link_and_its_file_is_replaced(migration: Migration, tmp_path: Path) -> None:
    migration.fill(1).migrate()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old.html").write_text("old")
    (tmp_path / "there" / "old.html").chmod(0o640)
    (tmp_path / "page.html").symlink_to("there/old.html")
    assert write_page(migration.dsn, tmp_path, expected=0).find("title")
    assert (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "there" / "old.html").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["old.html"]


def test_a_pipe_stays_a_pipe_and_gets_the_page(migration: Migration, tmp_path: Path) -> None:
    migration.fill(1).migrate()
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        assert migration.run("report", "--migration", "avatars", "--html", str(tmp_path / "pipe")).returncode == 0
        assert reader.communicate(timeout=30)[0].startswith("<!DOCTYPE html>")
    finally:
        reader.kill()
        reader.wait()
    assert (tmp_path / "pipe").is_fifo()


def test_new_files_are_for_their_owner_alone(migration: Migration) -> None:
    """They hold keys and error texts; a file that is there keeps its mode."""
    migration.fill(1).migrate()
    migration.write_plan()
    named = {"--html": migration.folder / "page.html", "--manifest": migration.folder / "manifest.jsonl"}
    before = os.umask(0o022)
    try:
        words = [str(word) for pair in named.items() for word in pair]
        assert migration.run("report", "--migration", "avatars", *words).returncode == 0
        named["log"] = migration.folder / "run.log"
        assert migration.run_here("verify", "--yes", "--log-file", str(named["log"])).returncode == 0
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in named.values()} == {0o600}


@pytest.mark.parametrize("option", ["--html", "--manifest"])
@pytest.mark.parametrize("name", ["", "-"])
def test_a_name_that_names_no_file_is_refused(migration: Migration, option: str, name: str) -> None:
    said = refused(migration.run("report", option, name))
    assert f"'{option}'" in said
    assert "name a file" in said
    assert not (migration.folder / "-").exists()
