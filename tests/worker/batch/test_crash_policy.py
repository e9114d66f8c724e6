"""Losses of the connection count as strikes beyond the free ones, make a batch wait, and are told."""

from datetime import timedelta

import pytest

from rowferry.batch import Attempt, Batch
from rowferry_worker.batch.crash_policy import (
    CrashPolicy,
    choose_policy,
    choose_wait,
    count_strikes,
    describe_crashes,
    describe_wait,
)


def make(
    *, inherited: int = 0, crashes: int = 0, losses: int = 0, since: float | None = None, unclear: float | None = None
) -> tuple[Batch, Attempt]:
    batch = Batch(1, 1, 1, "migrate", {}, 100, 5, 0, inherited)
    since_loss, unclear_for = (None if each is None else timedelta(seconds=each) for each in (since, unclear))
    return batch, Attempt(1, crashes + losses + 1, crashes, losses, since_loss, unclear_for)


@pytest.mark.parametrize(
    ("inherited", "crashes", "losses", "strikes", "policy"),
    [
        (0, 0, 2, 0, CrashPolicy.RUN),
        (0, 0, 3, 1, CrashPolicy.RUN_SLOWLY),
        (0, 0, 4, 2, CrashPolicy.BISECT),
        (0, 1, 3, 2, CrashPolicy.BISECT),
        (1, 0, 1, 0, CrashPolicy.RUN_SLOWLY),
        (1, 0, 2, 1, CrashPolicy.BISECT),
    ],
)
def test_losses_beyond_the_free_ones_are_strikes(
    inherited: int, crashes: int, losses: int, strikes: int, policy: CrashPolicy
) -> None:
    batch, attempt = make(inherited=inherited, crashes=crashes, losses=losses)
    assert count_strikes(batch, attempt) == strikes
    assert choose_policy(batch, attempt) is policy


@pytest.mark.parametrize(
    ("losses", "since", "unclear", "seconds"),
    [
        (1, 0, None, 0),
        (2, 0, None, 5),
        (2, None, None, 0),
        (3, 4, None, 6),
        (4, 0, None, 20),
        (12, 0, None, 300),
        (2, 60, None, 0),
        (0, None, 7, 7),
        (2, 0, 3, 5),
    ],
)
def test_a_batch_waits_twice_as_long_after_each_loss_up_to_five_minutes(
    losses: int, since: float | None, unclear: float | None, seconds: float
) -> None:
    assert choose_wait(*make(losses=losses, since=since, unclear=unclear)) == timedelta(seconds=seconds)


def test_a_wait_and_an_end_are_told_with_their_reasons() -> None:
    assert describe_wait(make(losses=3)[1]) == (
        "the connection was lost 3 times while it held this batch; it waits before it is run again"
    )
    assert describe_wait(make(losses=3, unclear=1)[1]) == (
        "its previous worker has fallen silent; the batch waits until that worker responds or counts as dead"
    )


@pytest.mark.parametrize(
    ("inherited", "crashes", "losses", "words"),
    [
        (2, 1, 0, "the worker died 3 times while it held this batch"),
        (2, 0, 1, "the worker died 2 times while it held this batch"),
        (2, 0, 2, "the connection was lost 2 times while it held this batch"),
        (0, 1, 3, "the worker died 1 times and the connection was lost 3 times while it held this batch"),
        (0, 0, 2, "it was tried 2 times and never came to its end"),
    ],
)
def test_what_has_ended_a_batch_is_counted(inherited: int, crashes: int, losses: int, words: str) -> None:
    assert describe_crashes(*make(inherited=inherited, crashes=crashes, losses=losses)) == words
