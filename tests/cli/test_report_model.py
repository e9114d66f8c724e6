"""The parts of the page that are computed from rows alone: intervals, charts, numbers, secrets."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry_cli.report.chart import MOST_INTERVALS, Chart, Span
from rowferry_cli.report.hide import HIDDEN, clean, cut, find_secrets, hide_secrets
from rowferry_cli.report.wording import write_bytes, write_rate, write_share, write_step

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@given(st.timedeltas(timedelta(0), timedelta(days=3000)), st.timedeltas(timedelta(0), timedelta(days=2)))
def test_a_span_holds_both_ends_in_at_most_120_intervals(duration: timedelta, offset: timedelta) -> None:
    span = Span(NOON + offset, NOON + offset + duration)
    first, *_, last = [*(intervals := span.cut({})), intervals[-1]]
    assert first.begins_at <= span.began_at < first.begins_at + span.step
    assert last.begins_at <= span.ended_at < last.begins_at + span.step
    assert 1 <= len(intervals) <= MOST_INTERVALS + 1


def test_an_interval_without_batches_is_zero_between_its_neighbours() -> None:
    span, counts = Span(NOON, NOON + 90 * MINUTE), ({"migrated": 600}, {}, {"migrated": 1200, "missing": 3})
    found = {span.begins_at + place * span.step: one for place, one in enumerate(counts)}
    chart = Chart("migrate", span.step, span.cut(found))
    assert [one.rate for one in chart.intervals[:3]] == [10, 0, pytest.approx(20.05)]
    assert (chart.top, chart.busiest, chart.outcomes) == (30, chart.intervals[2], ["migrated", "missing"])
    assert (chart.intervals[0].unsettled, chart.intervals[2].unsettled) == ({}, {"missing": 3})


@pytest.mark.parametrize(
    ("write", "values", "words"),
    [
        (write_share, (0.999999, 0.000001, 1, 0, None, 1 / 3, 0.29), "99.9 %|< 0.1 %|100 %|0 %|–|33.3 %|29.0 %"),
        (write_rate, (0, 0.044, 2.25, 12.34, 1234.5), "0|0.044|2.2|12.3|1,234"),
        (write_bytes, (0, 1023, 1536, 5 * 1024**3), "–|1023 B|1.5 KiB|5.0 GiB"),
        (write_step, tuple(timedelta(seconds=s) for s in (30, 300, 7200, 86_400)), "30 s|5 min|2 h|1 d"),
    ],
)
def test_numbers_are_written_with_as_many_digits_as_mean_something(write: Any, values: tuple[Any], words: str) -> None:
    """A share is 100 % only where nothing is left."""
    assert [write(value) for value in values] == words.split("|")


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


def test_foreign_text_shows_its_control_characters_and_is_cut_only_after_it_is_clean() -> None:
    assert clean("a\u202eb\x1b[31m\n") == r"a\u202eb\x1b[31m\n"
    assert cut("x" * 500, 10) == "x" * 9 + "…"
    assert cut("short") == "short"
