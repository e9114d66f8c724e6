"""Every bench runs in its short form and checks its own work; a failed one is told. No timing is asserted."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench import BENCHES, load_bench
from bench import __main__ as program
from bench.record import Record

pytestmark = pytest.mark.soak

PARTS = {"when", "how", "load", "machine", "versions", "settings", "absent", "median, from, to"}
MOST_LINES = 60


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", BENCHES)
def test_every_bench_runs_checks_its_work_and_tells_what_it_saw(name: str, tmp_path: Path) -> None:
    record = Record(name, short=True)
    load_bench(name).run(record)
    text = record.write(tmp_path).read_text()
    result = json.loads(text)
    assert result.keys() == PARTS
    assert result["how"] == "short"
    assert {"cpu", "cores", "memory_gb", "system", "python_call_ns"} == result["machine"].keys()
    assert 5 < result["machine"]["python_call_ns"] < 5_000
    assert {"rowferry", "python", "uvloop", "boto3", "postgresql"} <= result["versions"].keys()
    figures = [numbers for contestant in result["median, from, to"].values() for numbers in contestant.values()]
    assert figures
    assert all(low <= median <= high for median, low, high in figures)
    assert text.count("\n") < MOST_LINES


def measure_both(record: Record) -> None:
    record.interleave({"rowferry": lambda: {"entries_per_second": 7.0}}, repetitions=1)


def fail(record: Record) -> NoReturn:
    measure_both(record)
    raise ConnectionError("the server has gone")


@pytest.mark.parametrize("outage", [measure_both, fail])
def test_a_bench_that_fails_is_told_and_leaves_what_an_earlier_run_has_seen(
    outage: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {"claim": SimpleNamespace(run=measure_both), "outage": SimpleNamespace(run=outage)}
    monkeypatch.setattr(program, "load_bench", found.__getitem__)
    monkeypatch.setattr(program, "console", Console(width=200))
    (tmp_path / "outage.json").write_text("old")
    done = CliRunner().invoke(program.command, ["--only", "claim,outage", "--results", str(tmp_path)])
    failed = outage is fail
    assert done.exit_code == int(failed)
    assert ("the server has gone" in done.output, "Failed: outage." in done.output) == (failed, failed)
    assert done.output.count("entries per second") == 2 - failed
    assert ((tmp_path / "outage.json").read_text() == "old") is failed
    assert json.loads((tmp_path / "claim.json").read_text())["median, from, to"] == {
        "rowferry": {"entries_per_second": [7, 7, 7]}
    }
