"""The parts of the page that are computed from facts alone: intervals, charts, drawings, wording, secrets."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.batch import Outcome
from rowferry_cli.report.chart import build_chart, round_up
from rowferry_cli.report.events import find_pauses, tabulate_events
from rowferry_cli.report.facts import BatchFacts, Event, Interval, Span
from rowferry_cli.report.gather import MOST_INTERVALS, choose_step, cut_span, find_spans
from rowferry_cli.report.hide import HIDDEN, clean, cut, find_secrets, hide_secrets
from rowferry_cli.report.model import Bar
from rowferry_cli.report.planned import write_plan
from rowferry_cli.report.queue_parts import list_bars
from rowferry_cli.report.render import draw_marks, draw_pace, draw_shares
from rowferry_cli.report.wording import write_bytes, write_rate, write_share, write_step

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def interval(minutes: int, **outcomes: int) -> Interval:
    counts = {outcome: outcomes.get(outcome, 0) for outcome in Outcome}
    return Interval(queue="migrate", began_at=NOON + minutes * MINUTE, outcomes=counts)


def span(count: int, step: timedelta = MINUTE) -> Span:
    return Span(queue="migrate", begins_at=NOON, step=step, count=count)


def batches(began_at: datetime | None, ended_at: datetime, queue: str = "migrate") -> BatchFacts:
    numbers = dict.fromkeys(
        ("batches", "tried_twice", "tried_more", "requeued", "deep", "settled", "unsettled", "bytes"), 0
    )
    return BatchFacts(queue=queue, host="h", began_at=began_at, ended_at=ended_at, longest=None, **numbers)


# Intervals


@given(st.timedeltas(timedelta(0), timedelta(days=3000)), st.timedeltas(timedelta(0), timedelta(days=2)))
def test_a_span_holds_both_ends_in_at_most_120_intervals(duration: timedelta, offset: timedelta) -> None:
    began_at = NOON + offset
    found = cut_span("migrate", began_at, began_at + duration)
    assert found.begins_at <= began_at < found.begins_at + found.step
    assert found.begins_at + (found.count - 1) * found.step <= began_at + duration
    assert began_at + duration < found.begins_at + found.count * found.step
    assert 1 <= found.count <= MOST_INTERVALS + 1


def test_steps_are_round_and_begin_at_round_times() -> None:
    assert choose_step(timedelta(minutes=95)) == MINUTE
    assert choose_step(timedelta(0)) == SECOND
    assert choose_step(timedelta(days=400)) == timedelta(days=4)
    began_at = NOON + timedelta(seconds=77)
    assert cut_span("q", began_at, began_at + timedelta(hours=1)).begins_at == NOON + timedelta(seconds=60)


def test_each_queue_has_a_span_of_its_own_from_the_first_start_to_the_last_end() -> None:
    found = find_spans(
        [
            batches(NOON, NOON + MINUTE),
            batches(NOON - MINUTE, NOON),
            batches(None, NOON + timedelta(hours=1), "verify"),
        ]
    )
    assert (found["migrate"].begins_at, found["migrate"].step) == (NOON - MINUTE, 2 * SECOND)
    assert (found["verify"].begins_at, found["verify"].count) == (NOON + timedelta(hours=1), 1)


# The chart


def test_an_interval_without_batches_is_drawn_as_zero_between_its_neighbours() -> None:
    chart = build_chart(span(3), [interval(0, migrated=600), interval(2, migrated=1200)])
    assert [[bar.size for bar in column] for column in chart.columns] == [[50.0], [], [100.0]]
    assert (chart.highest, chart.half, chart.times) == ("20.0", "10.0", ("12:00", "12:02", "12:03"))
    assert "In 1 of them no attempt ended" in chart.description
    assert "The busiest began at 2026-11-22 12:02:00 UTC: 20.0 entries/s." in chart.description


def test_the_last_interval_of_a_run_that_goes_on_is_divided_by_what_has_passed_of_it() -> None:
    cut = replace(span(2), ends_at=NOON + 1.75 * MINUTE)
    chart = build_chart(cut, [interval(0, migrated=600), interval(1, migrated=900)])
    assert [bar.title for column in chart.columns for bar in column] == [
        "12:00: 10.0 entries/s (600 migrated)",
        "12:01: 20.0 entries/s (900 migrated)",
    ]
    assert [row[1] for row in chart.numbers.rows] == ["10.0", "20.0"]
    early = replace(span(2), ends_at=NOON + MINUTE + SECOND)
    assert early.seconds_of(1) == 30, "what ends in the first second was worked on before"


def test_the_first_interval_is_divided_by_what_there_was_of_it() -> None:
    """Work that began at 12:00:40 has two thirds of a minute less of 12:00; within one interval both ends count."""
    begun = cut_span("q", NOON + 40 * SECOND, NOON + timedelta(hours=1.5))
    assert (begun.step, begun.begins_at, begun.seconds_of(0)) == (MINUTE, NOON, 30), "at least half of one"
    assert replace(begun, began_at=NOON + 20 * SECOND).seconds_of(0) == 40
    assert begun.seconds_of(1) == 60
    alone = replace(span(1), began_at=NOON + 10 * SECOND, ends_at=NOON + 50 * SECOND)
    assert alone.seconds_of(0) == 40


def test_outcomes_are_stacked_upwards_and_a_few_failures_are_marked_below() -> None:
    chart = build_chart(span(2), [interval(1, migrated=5990, missing=3, failed=7)])
    (column,) = [column for column in chart.columns if column]
    assert [bar.name for bar in column] == ["migrated", "missing", "failed"]
    for lower, upper in pairwise(column):
        assert upper.start == pytest.approx(lower.start + lower.size)
    assert chart.marks == [Bar("failed", 50.0, 50.0, "12:01: 10 need an operator")]
    assert column[0].title == "12:01: 100 entries/s (5,990 migrated, 3 missing, 7 failed)"
    assert chart.outcomes == ["migrated", "missing", "failed"]


def test_the_table_behind_a_chart_adds_up_to_it() -> None:
    found = [interval(minute, migrated=minute, kept=1) for minute in range(100)]
    table = build_chart(span(100), found).numbers
    assert len(table.rows) <= 12
    assert sum(int(row[2]) for row in table.rows) == sum(range(100))
    assert sum(int(row[3]) for row in table.rows) == 100


def test_pauses_are_shaded_as_far_as_the_chart_goes() -> None:
    pauses = [(NOON - MINUTE, NOON + MINUTE), (NOON + 9 * MINUTE, None), (NOON - 9 * MINUTE, NOON - 8 * MINUTE)]
    chart = build_chart(span(10), [interval(0, migrated=1)], pauses)
    assert [(bar.start, bar.size) for bar in chart.pauses] == [(0.0, 10.0), (90.0, 10.0)]


@given(st.floats(1e-6, 1e9))
def test_the_top_of_an_axis_is_round_and_never_far_above(highest: float) -> None:
    assert highest * 0.99999 <= round_up(highest) <= highest * 1.6


@given(st.dictionaries(st.sampled_from([*map(str, Outcome), "waiting"]), st.integers(0, 10**9)))
def test_a_bar_of_shares_is_full_and_shows_each_outcome_that_occurs(sums: Mapping[str, int]) -> None:
    bars = list_bars(sums)
    assert {bar.name for bar in bars} == {name for name, number in sums.items() if number}
    assert sum(bar.size for bar in bars) == pytest.approx(100 if bars else 0)
    assert all(bar.size >= 0.45 for bar in bars)


# The drawing


def test_a_drawing_is_well_formed_holds_its_bars_and_hides_from_screen_readers() -> None:
    chart = build_chart(span(3), [interval(0, migrated=600), interval(2, failed=300)], [(NOON, NOON + MINUTE)])
    root = ElementTree.fromstring(draw_pace(chart))
    boxes = [box.attrib for box in root.iter("rect") if box.attrib["class"].startswith("o-")]
    assert [(box["class"], box["x"], box["y"], box["height"]) for box in boxes] == [
        ("o-migrated", "0", "0", "100"),
        ("o-failed", "800", "50", "50"),
    ]
    assert [box.attrib["width"] for box in root.iter("rect") if box.attrib["class"] == "pause"] == ["400"]
    assert root.attrib["aria-hidden"] == "true"
    assert len(list(ElementTree.fromstring(draw_marks(chart)).iter("rect"))) == 1


def test_a_title_in_a_drawing_is_escaped() -> None:
    drawn = draw_shares([Bar("failed", 0, 100, '</title><script>"')])
    assert "<script" not in drawn
    assert "&lt;/title&gt;&lt;script&gt;" in drawn


# Wording


def test_a_share_is_100_percent_only_where_nothing_is_left() -> None:
    shares = [write_share(*pair) for pair in ((999_999, 1_000_000), (1, 1_000_000), (5, 5), (0, 5), (0, 0), (1, 3))]
    assert shares == ["99.9 %", "< 0.1 %", "100 %", "0 %", "–", "33.3 %"]


def test_numbers_are_written_with_as_many_digits_as_mean_something() -> None:
    assert [write_rate(rate) for rate in (0, 0.044, 2.25, 12.34, 1234.5)] == ["0", "0.044", "2.2", "12.3", "1,234"]
    assert [write_bytes(size) for size in (0, 1023, 1536, 5 * 1024**3)] == ["–", "1023 B", "1.5 KiB", "5.0 GiB"]
    assert [write_step(timedelta(seconds=s)) for s in (30, 300, 7200, 86_400)] == ["30 s", "5 min", "2 h", "1 d"]


# Events


def event(minute: int, kind: str, queue: str | None = None, text: str = "") -> Event:
    return Event(at=NOON + minute * MINUTE, queue=queue, kind=kind, text=text)


def test_a_pause_goes_from_its_event_to_the_next_resume_of_the_same_queue() -> None:
    found = [
        event(5, "resumed"),
        event(3, "resumed", "verify"),
        event(1, "paused"),
        event(2, "paused", "verify"),
        event(8, "paused"),
        event(0, "resumed"),
        event(4, "requeued"),
    ]
    whole = [(NOON + MINUTE, NOON + 5 * MINUTE), (NOON + 8 * MINUTE, None)]
    assert find_pauses(found, "migrate") == whole
    assert find_pauses(found, "verify") == [*whole, (NOON + 2 * MINUTE, NOON + 3 * MINUTE)]


def test_two_events_of_one_transaction_are_taken_in_the_order_that_can_be() -> None:
    """Triggers record changes alone: who is not paused is paused first, and who is paused is resumed first."""
    both = [event(1, "paused"), event(1, "resumed")]
    for order in (both, both[::-1]):
        assert find_pauses(order, "migrate") == [(NOON + MINUTE, NOON + MINUTE)]
        again = [(NOON, NOON + MINUTE), (NOON + MINUTE, NOON + 2 * MINUTE)]
        assert find_pauses([event(2, "resumed"), *order, event(0, "paused")], "migrate") == again


def test_events_are_told_up_to_thirty_of_them() -> None:
    table = tabulate_events([event(minute, "worker_lost", text="host: lost") for minute in range(40)], str)
    assert table is not None
    assert (len(table.rows), table.rows[0][1], table.note) == (30, "worker lost", "10 earlier ones or more.")
    assert tabulate_events([], str) is None


# Secrets

TOLD = [
    "postgresql://me:hunter22@db/app",
    "postgresql://me:hunter22/not/quoted@db/app",
    "GET https://b.s3/k?X-Amz-Credential=hunter22&X-Amz-Signature=hunter22 failed",
    "https://b.s3/k?AWSAccessKeyId=x&Signature=hunter22&Expires=1",
    "host=db password=hunter22 user=me",
    "host=db password='hunter22 and more' user=me",
    '{"secret_access_key": "hunter22", "a": 1}',
    "Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=hunter22",
    "bearer hunter22hunter22hunter22",
    "<SecretAccessKey>hunter22</SecretAccessKey>",
    "aws_session_token = hunter22",
    "password: hunter22",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter22\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("text", TOLD)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    assert "hunter22" not in hide_secrets(text)
    assert HIDDEN in hide_secrets(text)


def test_the_id_of_an_aws_key_is_hidden() -> None:
    assert hide_secrets("key AKIAIOSFODNN7EXAMPLE is old") == f"key {HIDDEN} is old"


@pytest.mark.parametrize(
    "text",
    [
        "SignatureDoesNotMatch: correct ROWFERRY_LEGACY_SECRET_ACCESS_KEY, or the profile: the secret key is wrong",
        "ExpiredToken: The provided token has expired.",
        "image/u1/me.png",
        "https://s3.example:9000/bucket/me@example.org.png",
        "kms_key_id = \"alias/images\"",
        "NoSuchKey: The specified key does not exist.",
    ],
)  # fmt: skip
def test_the_words_of_a_server_stay(text: str) -> None:
    assert hide_secrets(text) == text


@pytest.mark.parametrize("text", ["e", "token ", "-", "://a:", "password", "Authorization "])
def test_a_long_text_takes_time_in_proportion_to_its_length(text: str) -> None:
    """Patterns that are quadratic would take hours for it."""
    assert hide_secrets(text * 20_000) == text * 20_000


def test_the_secrets_of_the_environment_are_hidden_wherever_they_are() -> None:
    environ = {
        "DATABASE_URL": "postgresql://me:pass%2Fw0rd@db/app",
        "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": "correct horse",
        "AWS_SECRET_ACCESS_KEY": "short",
        "ROWFERRY_LEGACY_ACCESS_KEY_ID": "just-an-id",
        "AWS_SESSION_TOKEN_FILE": "/run/secrets/token",
        "AWS_PROFILE": "an ordinary word",
    }
    secrets = find_secrets(environ)
    text = "pass/w0rd pass%2Fw0rd correct horse correct+horse short just-an-id /run/secrets/token"
    assert clean(text, secrets) == " ".join([HIDDEN] * 4) + " short just-an-id /run/secrets/token"


def test_the_secrets_in_files_are_hidden_too(tmp_path: Path) -> None:
    texts = {
        "DATABASE_URL": "postgresql://me:in-the-url@db/app",
        "ROWFERRY_LEGACY_SECRET_ACCESS_KEY": "in-the-file",
        "POSTGRES_PASSWORD": "x" * 70_000,
    }
    environ: dict[str, str] = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n")
        environ[f"{name}_FILE"] = str(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    environ |= {"A_TOKEN_FILE": str(tmp_path / "pipe"), "B_TOKEN_FILE": str(tmp_path), "C_TOKEN_FILE": "\0"}
    environ["ROWFERRY_LEGACY_SECRET_ACCESS_KEY"] = "in-the-variable"
    assert find_secrets(environ) == {"in-the-url", "in-the-file", "in-the-variable"}


# The plan


def test_the_plan_of_another_version_is_written_whatever_it_holds() -> None:
    plan: dict[str, Any] = {
        "migration": {"name": "m", "later": {"a": [1, {"b": None}]}},
        "future": 3,
        "list": [1, "two", {"three": 3}],
        "nothing": None,
        "queue": {"migrate": {"priority": 1}, "scalar": True},
        "entries": [{"table": "t"}, {"table": "u"}],
        "empty": {},
    }
    lines = write_plan(plan)
    assert lines[:2] == ["future = 3", 'list = [1, "two", {three = 3}]'.replace("{", "{ ").replace("}", " }")]
    assert lines[2:4] == ["", "[migration]"]
    for group in (["[queue]", "scalar = true"], ["[queue.migrate]", "priority = 1"], ["[[entries]]", 'table = "u"']):
        assert group in [lines[index : index + 2] for index in range(len(lines))]
    assert "[empty]" in lines
    assert [write_plan(one) for one in ({"future": 3}, {}, {"queue": 7})] == [["future = 3"], [], ["queue = 7"]]


def test_foreign_text_shows_its_control_characters_and_is_cut_only_after_it_is_clean() -> None:
    assert clean("a\u202eb\x1b[31m\n") == r"a\u202eb\x1b[31m\n"
    assert cut("x" * 500, 10) == "x" * 9 + "…"
    assert cut("short") == "short"
