"""The candidates that the product's controller was compared with; each is the method's core, on limits of objects."""

import math
from dataclasses import dataclass, field

from support.pacing.simulator import Simulation

MOST = 4096


@dataclass
class Rounds:
    """What all candidates share: a limit that moves once a round of as many responses as may be in flight."""

    simulation: Simulation
    limit: float = 4.0
    responses: int = 0
    refused: int = 0
    latencies: list[float] = field(default_factory=list[float])

    @property
    def value(self) -> int:
        return int(max(1.0, min(MOST, self.limit)))

    @property
    def looks(self) -> int | None:
        return None

    def reserve(self, key: str) -> float:
        return 0.0

    def note_success(self, key: str, seconds: float, size_bytes: int, in_flight: int) -> None:
        self.latencies.append(seconds)
        self._note()

    def note_refused(self, key: str, retry_after: float) -> None:
        self.refused += 1
        self._note()

    def note_failed(self, key: str) -> None:
        self.refused += 1
        self._note()

    def _note(self) -> None:
        self.responses += 1
        if self.responses >= self.value:
            self.end_round(self.refused / self.responses, sum(self.latencies) / max(1, len(self.latencies)))
            self.responses = self.refused = 0
            self.latencies.clear()

    def end_round(self, refused: float, latency: float) -> None:
        """Move the limit by the refused share and the mean latency of a round."""
        raise NotImplementedError


@dataclass
class Fixed(Rounds):
    """A limit that never moves."""

    def end_round(self, refused: float, latency: float) -> None:
        """Change nothing."""


@dataclass
class Aimd(Rounds):
    """What the product had: additive increase, decrease by the refused share, and by latency against the best ever."""

    best: float = math.inf
    is_doubling: bool = True

    def end_round(self, refused: float, latency: float) -> None:
        if self.latencies:
            self.best = min(self.best * 1.002, *self.latencies)
        step = MOST / 64
        if refused:
            self.limit, self.is_doubling = self.limit * (1 - refused / 2) + step, False
        elif latency > 3 * self.best and latency > self.best + 0.25:
            self.limit, self.is_doubling = self.limit * 0.9, False
        else:
            self.limit = self.limit * 2 if self.is_doubling else self.limit + step
        self.limit = min(MOST, max(1.0, self.limit))


@dataclass
class Cubic(Rounds):
    """CUBIC (RFC 9438): it falls to 0.7 at a refusal, and rises as the cube of the time since."""

    before: float = 0.0
    fell_at: float = -1.0

    def end_round(self, refused: float, latency: float) -> None:
        now = self.simulation.now
        if refused:
            self.before, self.fell_at, self.limit = self.limit, now, max(1.0, self.limit * 0.7)
        elif self.fell_at < 0:
            self.limit = min(MOST, self.limit * 2)
        else:
            turn = (self.before * 0.3 / 0.4) ** (1 / 3)
            self.limit = min(MOST, max(1.0, self.before + 0.4 * (now - self.fell_at - turn) ** 3))


@dataclass
class Bbr(Rounds):
    """BBR's model: twice the best throughput times the least latency of the last ten seconds."""

    throughputs: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    least: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    ended_at: float = 0.0

    def end_round(self, refused: float, latency: float) -> None:
        now = self.simulation.now
        seconds, self.ended_at = max(1e-3, now - self.ended_at), now
        if self.latencies:
            self.throughputs.append((now, len(self.latencies) / seconds))
            self.least.append((now, min(self.latencies)))
        self.throughputs = [one for one in self.throughputs if now - one[0] < 10]
        self.least = [one for one in self.least if now - one[0] < 10]
        if self.throughputs:
            product = max(rate for _, rate in self.throughputs) * min(best for _, best in self.least)
            self.limit = min(MOST, max(4.0, 2 * product))


@dataclass
class Vegas(Rounds):
    """TCP Vegas (Brakmo and Peterson, 1994): the queue by the best latency ever, kept between two bounds."""

    best: float = math.inf
    is_doubling: bool = True

    def end_round(self, refused: float, latency: float) -> None:
        if self.latencies:
            self.best = min(self.best, *self.latencies)
        queue = self.limit * (1 - self.best / latency) if self.latencies else 0.0
        scale = max(1.0, math.log10(self.limit))
        if refused:
            self.limit, self.is_doubling = self.limit * (1 - refused / 2), False
        elif queue > 6 * scale:
            self.limit, self.is_doubling = self.limit - scale, False
        elif queue < 3 * scale:
            self.limit = self.limit * 2 if self.is_doubling else self.limit + scale
        self.limit = min(MOST, max(1.0, self.limit))


@dataclass
class Gradient(Rounds):
    """Gradient2 of Netflix' concurrency-limits: the limit times long latency / short latency, and a square root."""

    long: float = 0.0

    def end_round(self, refused: float, latency: float) -> None:
        if not self.latencies:
            return
        self.long = latency if not self.long else self.long + 0.1 * (latency - self.long)
        if self.long > 2 * latency:
            self.long *= 0.95
        gradient = max(0.5, min(1.0, 1.5 * self.long / latency))
        wanted = self.limit * gradient + math.sqrt(self.limit)
        self.limit = min(MOST, max(20.0, 0.8 * self.limit + 0.2 * wanted)) if not refused else self.limit * 0.9


CANDIDATES = {"AIMD": Aimd, "CUBIC": Cubic, "BBR": Bbr, "Vegas": Vegas, "gradient": Gradient}
