"""What a sweep tries, in which order, and what it concludes: decisions, without servers."""

import csv
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rowferry_lab.sweep.grid import (
    AUTO,
    Grid,
    Recommendation,
    Result,
    Setting,
    Summary,
    Trial,
    choose_rows,
    recommend,
    summarise,
)
from rowferry_lab.sweep.results import (
    describe_grid,
    list_facts,
    list_summary_facts,
    make_document,
    open_csv,
    show_conclusion,
)

SIZES = st.lists(st.integers(1, 1000), min_size=1, max_size=4, unique=True).map(lambda found: tuple(sorted(found)))


def make_grid(sizes: tuple[int, ...] = (100, 500), parallels: tuple[int, ...] = (16, 64), **more: int) -> Grid:
    settings = {"repetitions": 3, "entries": 100, "seed": 1, **more}
    return Grid(batch_sizes=sizes, parallels=parallels, latency=timedelta(milliseconds=70), **settings)


def make_result(parallel: int, size: int, rate: float, *problems: str) -> Result:
    second = timedelta(seconds=1)
    return Result(Trial(1, 1, Setting(parallel, size)), 1000, second * 1000 / rate, second, second / 10, problems)


def make_summary(parallel: int, size: int, mean: float, *, stdev: float = 1.0, server_share: float = 0.1) -> Summary:
    return Summary(Setting(parallel, size), 3, mean, stdev, server_share)


@given(SIZES, SIZES, st.integers(1, 4), st.integers(0, 99))
def test_each_repetition_tries_each_setting_once(
    sizes: tuple[int, ...], parallels: tuple[int, ...], repetitions: int, seed: int
) -> None:
    grid = make_grid(sizes, parallels, repetitions=repetitions, seed=seed)
    trials = list(grid.order())
    assert [trial.number for trial in trials] == list(range(1, grid.runs + 1))
    assert [trial.repetition for trial in trials] == sorted(trial.repetition for trial in trials)
    counted = Counter((trial.setting, trial.repetition) for trial in trials)
    settings = [Setting(parallel, size) for parallel in parallels for size in sizes]
    assert counted == {(setting, number): 1 for setting in settings for number in range(1, repetitions + 1)}


def test_the_order_is_of_chance_and_the_seed_repeats_it() -> None:
    orders = {tuple(make_grid(seed=seed).order()) for seed in range(20)}
    assert len(orders) > 10
    assert list(make_grid(seed=7).order()) == list(make_grid(seed=7).order())


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ((100, 500, 1000), 8000),  # four batches of a thousand legacy entries
        ((100,), 2000),
        ((10, 4000), 32_000),
        ((100_000,), 100_000),
    ],
)
def test_a_run_has_four_of_its_largest_batches(sizes: tuple[int, ...], rows: int) -> None:
    assert choose_rows(sizes) == rows
    grid = make_grid(sizes, entries=rows)
    assert grid.starved_sizes == [size for size in sizes if size == 100_000]


def test_too_few_rows_are_told_before_the_first_run() -> None:
    _, line = describe_grid(make_grid((10, 500, 1000), entries=2000))
    assert "So few rows make too few batches of 500, 1,000, so these figures will be too low" in line
    assert line.endswith("use --entries 8000.")
    assert len(describe_grid(make_grid((10, 500), entries=4000))) == 1


def test_mean_and_deviation_are_those_of_the_correct_runs() -> None:
    rates = [90.0, 100.0, 110.0]
    results = [make_result(16, 100, rate) for rate in rates]
    (summary,) = summarise([*results, make_result(16, 100, 900, "a row is wrong")])
    assert (summary.runs, round(summary.mean, 3), round(summary.stdev, 3)) == (3, 100, 10)
    assert summary.server_share == pytest.approx(sum(rate / 10_000 for rate in rates) / 3)


def test_a_single_run_has_no_deviation_and_wrong_runs_have_no_summary() -> None:
    (summary,) = summarise([make_result(16, 100, 50), make_result(64, 100, 60, "a row is wrong")])
    assert (summary.setting, summary.stdev) == (Setting(16, 100), 0)
    assert recommend(summarise([make_result(64, 100, 60, "a row is wrong")]), 0.05) is None


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (0.0, Setting(256, 500)),
        (0.05, Setting(64, 500)),  # 970 of 1,000; with batches of 100 it is 900
        (0.10, Setting(64, 100)),
        (0.50, Setting(64, 100)),  # 16 in flight give 200
        (0.85, Setting(16, 100)),
    ],
)
def test_the_smallest_setting_near_enough_to_the_best_is_recommended(within: float, expected: Setting) -> None:
    means = {(16, 100): 200, (16, 500): 210, (64, 100): 900, (64, 500): 970, (256, 100): 990, (256, 500): 1000}
    found = recommend([make_summary(*setting, mean) for setting, mean in means.items()], within)
    assert found is not None
    assert found.setting == expected


def test_the_reason_names_both_figures_and_what_would_change_it() -> None:
    middle = recommend([make_summary(16, 100, 97), make_summary(64, 100, 100)], 0.05)
    assert middle is not None
    assert (
        "97% of the fastest (97 ± 1 entries/s of 100 ± 1 entries/s, which takes 64 in flight and batches"
        in middle.why[0]
    )
    assert len(middle.why) == 1
    edge = recommend([make_summary(16, 100, 20), make_summary(64, 100, 100, server_share=0.9)], 0.05)
    assert edge is not None
    assert ["fastest" in edge.why[0], "larger ones" in edge.why[1], "90% of a core" in edge.why[2]] == [True] * 3


@pytest.mark.parametrize(
    ("parallel", "command"), [(4, "rowferry worker --parallel 4 --min-parallel 4"), (AUTO, "rowferry worker")]
)
def test_the_command_that_is_recommended_leaves_the_choice_of_the_worker_to_it(
    parallel: int, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_conclusion(Console(), [], Recommendation(Setting(parallel, 30), ()))
    assert command in [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_the_csv_is_complete_after_each_run(tmp_path: Path) -> None:
    path, results = tmp_path / "sweep.csv", [make_result(16, 100, 90), make_result(16, 100, 110, "a row is wrong")]
    with open_csv(path) as add_row:
        for number, result in enumerate(results, start=1):
            add_row(list_facts(result))
            assert len(list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))) == number
        for summary in summarise(results):
            add_row(list_summary_facts(summary))
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [row["kind"] for row in rows] == ["run", "run", "summary"]
    assert [row["correct"] for row in rows] == ["True", "False", "True"]
    assert [float(row["entries_per_second"]) for row in rows] == [90, 110, 90]
    assert (rows[2]["repetition"], rows[2]["entries_per_second_stdev"]) == ("1", "0.0")


def test_the_document_names_the_problems_of_a_run() -> None:
    results = [make_result(16, 100, 90, "a row is wrong")]
    document = make_document(make_grid(), results, [], None)
    assert document["runs"][0]["problems"] == ["a row is wrong"]
    assert document["recommendation"] is None
