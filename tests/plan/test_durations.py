"""Every command reads durations alike."""

from datetime import timedelta

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


def test_each_unit_is_read_by_every_command() -> None:
    for text, duration in WRITTEN.items():
        assert (parse_duration(text), parse_seconds(text)) == (duration, duration.total_seconds())
        for command in (prune, clean_uploads):
            assert command.make_context("it", ["--older-than", text]).params["older_than"] == duration
    context = worker.make_context("worker", ["--grace", "2m", "--lost-after", "20", "--time-budget", "1500ms"])
    seconds = [context.params[name].total_seconds() for name in ("grace", "lost_after", "time_budget")]
    assert seconds == [120, 20, 1.5]
    assert sweep.make_context("sweep", ["--latency", "0.1m"]).params["latency"] == timedelta(seconds=6)


def test_what_is_no_duration_is_none() -> None:
    for text in ("", "5", "-1d", "1y", "1e3s", "1 d 2 h", "١d", "nan", "inf", "99999999999w"):
        assert parse_duration(text) is None


@given(st.text(max_size=20))
def test_no_text_does_any_harm(text: str) -> None:
    duration = parse_duration(text)
    assert duration is None or timedelta(0) <= duration <= LONGEST
    assert (parse_seconds(text) or 0) >= 0
