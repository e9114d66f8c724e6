"""Every command reads durations alike."""

from datetime import timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.formatting import LONGEST, parse_duration, parse_seconds
from rowferry_cli.operate.clean_uploads import command as clean_uploads
from rowferry_cli.operate.prune import command as prune
from rowferry_cli.work.worker import command as worker
from rowferry_lab.commands.sweep import command as sweep

WRITTEN = {
    "0s": timedelta(0),
    "70ms": timedelta(milliseconds=70),
    "30m": timedelta(minutes=30),
    "30min": timedelta(minutes=30),
    "12h": timedelta(hours=12),
    "1.5d": timedelta(hours=36),
    "4 w": timedelta(weeks=4),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_each_unit_is_read(text: str) -> None:
    assert parse_duration(text) == WRITTEN[text]
    assert parse_seconds(text) == WRITTEN[text].total_seconds()


@pytest.mark.parametrize("command", [prune, clean_uploads], ids=["prune", "clean-uploads"])
@pytest.mark.parametrize("text", WRITTEN)
def test_commands_that_look_back_take_the_same_durations(command: click.Command, text: str) -> None:
    context = command.make_context("it", ["--older-than", text])
    assert context.params["older_than"] == WRITTEN[text]


def test_a_worker_takes_seconds_with_and_without_a_unit() -> None:
    context = worker.make_context("worker", ["--grace", "2m", "--lost-after", "20", "--time-budget", "1500ms"])
    seconds = [context.params[name].total_seconds() for name in ("grace", "lost_after", "time_budget")]
    assert seconds == [120, 20, 1.5]


def test_a_sweep_takes_a_latency_with_any_unit() -> None:
    assert sweep.make_context("sweep", ["--latency", "0.1m"]).params["latency"] == timedelta(seconds=6)


@pytest.mark.parametrize("text", ["", "5", "-1d", "1y", "1e3s", "1 d 2 h", "١d", "nan", "inf", "99999999999w"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None


@given(st.text(max_size=20))
def test_no_text_does_any_harm(text: str) -> None:
    duration = parse_duration(text)
    assert duration is None or timedelta(0) <= duration <= LONGEST
    assert (parse_seconds(text) or 0) >= 0
