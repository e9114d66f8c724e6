"""Every bench runs in its short form and checks its own work. No timing is asserted."""

import json
from pathlib import Path

import pytest

from bench import BENCHES, load_bench
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
