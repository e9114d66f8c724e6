"""With CI=true only the skips of tests/skips.toml are taken."""

from pathlib import Path

import pytest

from support.running.skips import find_entry, read_allowed_skips, read_why_not_run


def test_an_absent_part_may_be_absent_only_where_its_installation_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.running.skips.NOT_RUN", tmp_path)
    entries, reason = read_allowed_skips(), "versitygw is not here: `make servers` builds it where `go` is installed"
    assert find_entry(entries, "tests/s3/test_it.py::test_it", reason) is None
    (tmp_path / "versitygw").write_text("there is no go here\n")
    assert find_entry(entries, "tests/s3/test_it.py::test_it", reason) is not None
    assert read_why_not_run("versitygw") == "there is no go here"
