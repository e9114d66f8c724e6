"""How long the fake S3 server takes for a response, and which requests it refuses."""

from math import exp
from random import Random

from msgspec import Struct


class Latency(Struct, frozen=True):
    """How long a response takes."""

    seconds: float = 0.0
    """The median."""
    sigma: float = 0.0
    """Of a lognormal distribution; 0: all responses take as long."""

    def draw(self, dice: Random) -> float:
        """Return the seconds that one response takes."""
        return self.seconds * exp(dice.gauss(0, self.sigma)) if self.sigma else self.seconds


class Limits(Struct, frozen=True):
    """Which requests are answered 503 SlowDown."""

    writes_per_second: float = 0.0
    """To each bucket; 0: no bound."""
    burst_seconds: float = 0.1
    """A token bucket holds what it lets through in so many seconds, one token at least."""
    counts_refused: bool = False
    """Whether a refused request takes a token as well; the bucket owes what it lets through in a second at the most."""
    refused_share: float = 0.0
    """The share of all requests that is refused at random besides, from 0 to 1."""


class TokenBucket:
    """Tokens flow in at a rate, up to a burst, and each request takes one. It begins full."""

    def __init__(self, limits: Limits) -> None:
        """Take what the limits say of the rate, of a burst, and of refused requests."""
        self._per_second = limits.writes_per_second
        self._burst = self._tokens = max(self._per_second * limits.burst_seconds, 1.0)
        self._least = -self._per_second if limits.counts_refused else 0.0
        self._filled_at = 0.0

    def take(self, now: float) -> bool:
        """Return whether there was a token; `now` is of a clock that never goes back, in seconds."""
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        is_free = self._tokens >= 1
        if is_free or self._least:
            self._tokens = max(self._least, self._tokens - 1)
        return is_free
