"""Every bench runs in its short form and checks its own work. No timing is asserted."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import BENCHES, load_bench
from bench.page import describe_target
from bench.record import Record
from bench.worst import expect_worst, list_medians, list_ratios

pytestmark = pytest.mark.soak

PARTS = {"name", "what", "when", "seconds", "short", "machine", "versions", "settings", "targets", "notes", "absent"}
PARTS |= {"summary", "repetitions", "series", "reduced"}


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", BENCHES)
def test_every_bench_runs_checks_its_work_and_tells_what_it_saw(name: str, tmp_path: Path) -> None:
    record = Record(name, BENCHES[name], short=True)
    load_bench(name).run(record)
    result = json.loads(record.write(tmp_path).read_text())
    assert result.keys() == PARTS
    assert result["short"] is True
    assert {"cpu", "cores", "memory_gb", "system", "python_call_ns"} == result["machine"].keys()
    assert 5 < result["machine"]["python_call_ns"] < 5_000
    assert {"rowferry", "python", "uvloop", "boto3"} <= result["versions"].keys()
    if not result["absent"]:
        assert result["targets"]
    for run in result["repetitions"]:
        assert run.keys() > {"contestant", "load_before"}
        figures = result["summary"][run["contestant"]]
        assert all(figures[name]["min"] <= run[name] <= figures[name]["max"] for name in run.keys() - {"contestant"})


def test_contestants_take_turns() -> None:
    record = Record("x", "x")
    order: list[str] = []

    def measure(name: str, value: float) -> dict[str, float]:
        order.append(name)
        return {"throughput": value}

    record.interleave({"a": lambda: measure("a", 3), "b": lambda: measure("b", 1)}, repetitions=2)
    assert order == ["a", "b", "a", "b"]
    assert [run["contestant"] for run in record.repetitions] == order


def test_medians_and_spread_are_those_of_all_repetitions() -> None:
    record = Record("x", "x")
    rates = iter((10.0, 40.0, 20.0))
    record.interleave({"a": lambda: {"throughput": next(rates)}}, repetitions=3)
    assert record.median("a", "throughput") == 20
    assert record.summarise()["a"]["throughput"] == {
        "median": 20,
        "min": 10,
        "max": 40,
        "stdev": pytest.approx(15.2753, 1e-4),
    }


@pytest.mark.parametrize(
    ("seen", "bounds", "verdict"),
    [
        (3.0, {"at_least": 3}, "yes"),
        (2.999, {"at_least": 3}, "no"),
        (0.2, {"at_most": 0.2}, "yes"),
        (0.21, {"at_most": 0.2}, "no"),
        (7.0, {}, "reported"),
    ],
)
def test_a_target_is_reached_within_its_bounds(seen: float, bounds: dict[str, Any], verdict: str) -> None:
    record = Record("x", "x")
    record.expect("this", seen, **bounds)
    assert describe_target(record.compose()["targets"][0])[3] == verdict


def test_a_rival_that_is_absent_is_named_and_compared_with_nothing() -> None:
    record = Record("x", "x")
    record.absent["rival"] = "not installed"
    record.interleave({"a": lambda: {"throughput": 1.0}}, repetitions=1)
    record.compare("against it", "throughput", "a", "rival", at_least=3)
    result = record.compose()
    assert result["targets"] == []
    assert result["absent"] == {"rival": "not installed"}


@pytest.mark.parametrize(
    ("less_is_better", "worst", "server"), [(False, 2.0, "b, start included"), (True, 8.0, "a, start excluded")]
)
def test_the_worst_of_the_servers_counts_with_the_start_or_without(
    less_is_better: bool, worst: float, server: str
) -> None:
    record = Record("x", "x")
    figures = {"a": {"cost": 8.0, "cost_start_included": 4.0}, "b": {"cost": 6.0, "cost_start_included": 2.0}}
    record.interleave({f"we, {name}": lambda seen=seen: seen for name, seen in figures.items()}, repetitions=1)
    record.interleave(
        {f"they, {name}": lambda: {"cost": 1.0, "cost_start_included": 1.0} for name in figures}, repetitions=1
    )
    seen = list_ratios(record, ("a", "b", "absent"), "we", "they", "cost")
    expect_worst(record, "cost", seen, less_is_better=less_is_better)
    assert [(target.seen, target.server) for target in record.targets] == [(worst, server)]
    assert describe_target(record.compose()["targets"][0])[0] == f"cost, at worst: {server}"


def test_a_start_that_was_told_apart_once_is_not_told() -> None:
    record = Record("x", "x")
    seen = iter([{"cost": 1.0, "cost_start_included": 2.0}, {"cost_start_included": 4.0}])
    record.interleave({"we, a": lambda: next(seen)}, repetitions=2)
    assert list_medians(record, ["a"], "we", "cost") == {"a, start included": 3.0}
