"""`python -m bench` tells what it saw now from what an earlier run has left, and says when a bench failed."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from bench import __main__ as program
from bench.record import Record

pytestmark = pytest.mark.soak


def measure(record: Record) -> None:
    record.expect(f"entries of {record.name}", 7, at_least=3)


def fail(record: Record) -> NoReturn:
    measure(record)
    raise ConnectionError("the server has gone")


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch) -> dict[str, SimpleNamespace]:
    """Two benches, of which one fails."""
    found = {"claim": SimpleNamespace(run=measure), "outage": SimpleNamespace(run=fail)}
    monkeypatch.setattr(program, "load_bench", found.__getitem__)
    monkeypatch.setattr(program, "console", Console(width=200))
    return found


def run_both(folder: Path) -> Result:
    return CliRunner().invoke(program.command, ["--only", "claim,outage", "--results", str(folder)])


def line_of(done: Result, words: str) -> str:
    (line,) = [line for line in done.output.splitlines() if words in line and "│" in line]
    return line


@pytest.mark.usefixtures("benches")
def test_the_figures_of_a_bench_that_failed_are_shown_as_old(tmp_path: Path) -> None:
    old = Record("outage", "…")
    measure(old)
    (tmp_path / "outage.json").write_text(json.dumps({**old.compose(), "when": "2026-01-02T03:04:05+00:00"}))
    before = (tmp_path / "outage.json").read_bytes()
    done = run_both(tmp_path)
    assert done.exit_code == 1
    assert "the server has gone" in done.output
    assert "Failed: outage." in done.output
    assert "old, of 2026-01-02" in line_of(done, "entries of outage")
    assert "now" in line_of(done, "entries of claim")
    assert (tmp_path / "outage.json").read_bytes() == before


@pytest.mark.usefixtures("benches")
def test_a_bench_that_failed_at_its_first_run_has_no_figures(tmp_path: Path) -> None:
    done = run_both(tmp_path)
    assert done.exit_code == 1
    assert "failed, and never seen" in line_of(done, "outage")
    assert not (tmp_path / "outage.json").exists()


def test_benches_that_come_to_their_end_are_all_new(benches: dict[str, SimpleNamespace], tmp_path: Path) -> None:
    benches["outage"].run = measure
    done = run_both(tmp_path)
    assert done.exit_code == 0
    assert "Failed" not in done.output
    assert ["now" in line_of(done, f"entries of {name}") for name in benches] == [True, True]
