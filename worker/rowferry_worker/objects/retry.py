"""How long to wait before trying again. Pure, but for the dice."""

from datetime import timedelta
from random import SystemRandom

_DICE = SystemRandom()

BASE = timedelta(seconds=2)
LONGEST = timedelta(hours=1)


def retry_delay(attempt: int, *, base: timedelta = BASE, longest: timedelta = LONGEST) -> timedelta:
    """Return the wait before the next attempt: full jitter in [0, base * 2**attempt], at most `longest`.

    `attempt` counts the tries already made, from 1. Source: "Exponential Backoff And Jitter",
    AWS Architecture Blog, 2015.
    """
    bound = min(base * 2 ** min(attempt, 32), longest)
    return bound * _DICE.random()


def jittered(wait: timedelta) -> timedelta:
    """Return a wait between half of `wait` and one and a half times it, so that workers do not march in step."""
    return wait * (0.5 + _DICE.random())
