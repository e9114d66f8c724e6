"""Refusals that no bound explains: a share of all requests, however few are sent."""

import math
from dataclasses import dataclass

from rowferry_worker.pacing.tenths import Tenths

LOW, HIGH, HIGH_AMONG = 0.6, 2.0, 3.0
"""The parts of the rate at which refusals began where their share would be another behind a bound.

Among others a part of a bound may become so much larger while they send less.
"""
LEAST, MOST = 0.005, 0.2
"""The shares of refusals that may be a habit: a server that refuses more is taken to mean it."""
FEW = 20
"""Requests that tell the share that is refused, roughly."""
EVIDENCE, SAMPLES = 4, 60
"""Refusals that tell a habit, and requests that tell that there is none."""
EVIDENCE_LOW, SAMPLES_LOW = 3, 40
"""The same at a low rate, where a bound refuses nothing."""
SECONDS = 1.0
"""How long the rate must have been low."""
LONGEST_SECONDS = 8.0
"""How long is looked back."""
SAME = 0.5
"""The part of the share at the beginning that must be left at the low rate."""


@dataclass(slots=True)
class Habit:
    """What share one server refuses of one operation's requests whatever their rate, if any."""

    share: float = 0.0
    """The share, as an upper bound; 0: no habit is known."""
    began_at: float = 0.0
    """The rate at which refusals began."""
    _first_share: float = 0.0
    _since: float = math.inf

    def begin(self, rate: float, accepted: int, refused: int) -> None:
        """Note at what rate refusals began, and their share."""
        share = refused / max(1, accepted + refused)
        most = (refused + math.sqrt(refused)) / max(1, accepted + refused)
        self.began_at, self._first_share = rate, share if most < MOST else 0.0

    def begin_once(self, rate: float, accepted: int, refused: int) -> bool:
        """Begin unless that was done; return False while there is too little to tell."""
        if not self._first_share and accepted + refused < FEW:
            return False
        if not self._first_share:
            self.begin(rate, accepted, refused)
        return True

    def end(self) -> None:
        """Note that refusals have ended: they were those of a bound."""
        self._first_share = 0.0

    def forget(self) -> None:
        """Take for a bound what was taken for a habit."""
        self.share = 0.0

    @property
    def is_possible(self) -> bool:
        """Whether the refusals may turn out to be a habit."""
        return self._first_share > 0

    def is_found(
        self, now: float, rate: float, tenths: Tenths, fair: float | None, *, has_fallen: bool = False
    ) -> bool:
        """Return whether about the same share is refused at a rate that is much lower, or much higher; note it.

        `has_fallen`: the rate is much lower, as those of the others are.
        """
        lowest = 0.0 if fair is None else LOW * (min(self.began_at, fair) or self.began_at)
        highest = self.began_at * (HIGH if fair == 0 else HIGH_AMONG)
        if not self._first_share or (lowest < rate < highest and not has_fallen):
            self._since = math.inf
            return False
        self._since = min(self._since, now)
        is_high = rate >= highest
        seconds, accepted, refused = tenths.count(max(now - LONGEST_SECONDS, self._since))
        count = accepted + refused
        samples, evidence = (SAMPLES, EVIDENCE) if is_high else (SAMPLES_LOW, EVIDENCE_LOW)
        if now - self._since < (0.0 if is_high else SECONDS) or count < samples or refused < evidence:
            return False
        share, first = refused / count, self._first_share
        if is_high and accepted < 0.7 * highest * seconds:
            return False
        self._first_share, self._since = 0.0, math.inf
        if not SAME * first < share < MOST:
            return False
        self.share = (refused + math.sqrt(refused + 1)) / count
        return True

    def tell(self, least: float) -> float:
        """Return after how many requests without a refusal there is no habit; `least` where none is possible."""
        return max(least, 4.0 / self._first_share) if self._first_share else least

    def lower(self, accepted: int, refused: int) -> None:
        """Take in what came back lately: the share may be smaller, or the habit gone."""
        if accepted + refused >= SAMPLES:
            self.share = min(self.share, (refused + 2 * math.sqrt(refused + 1) + 1) / (accepted + refused))
            if self.share < LEAST:
                self.share = 0.0
