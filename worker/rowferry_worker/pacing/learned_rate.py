"""The rate of one operation on one server, learned from its refusals: none until it refuses.

What is accepted while requests are refused is the bound. A rate is cut below it, returns to it by CUBIC's curve, stays
until the refusals are paid for, and rises above it by the same curve (RFC 9438; the AWS SDKs' adaptive mode has it on
a rate). A server that accepts nothing counts what it refuses as well: it is left alone for a moment and asked a little,
as after a retransmission timeout of TCP; what it has refused by the time that it is open again tells its bound. Where
none is known, slow start finds it (RFC 5681). Refusals at random are told from a bound by their share, which is the
same at another rate.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rowferry.s3.retry import LONGEST_RETRY_AFTER, LONGEST_TURN
from rowferry_worker.pacing.rate_limit import Turns

LEAST = 0.5
"""Requests per second that are always tried."""
BURST_SECONDS = 0.04
"""How much of an unused moment is caught up with: small buckets must not overflow."""
TOLERATED = 0.02
"""The share of refusals that leads to no cut; after one the rate stays until half of this share was refused."""
FEW = 4
"""Refusals that tell something, and requests in which slow start grows e-fold at the most."""
WINDOW, WINDOW_SECONDS = 40, 1.0
"""The requests, and the least time, that tell whether too much is refused, and what is let through."""
BELOW, BETA = 0.97, 0.9
"""The parts of what is let through to which a rate returns, and of that to which it is cut (RFC 9438 has 0.7)."""
RETURN_SECONDS = 3.0
"""How long a rate takes to return; above it, it rises by the same curve."""
GROWTH_SECONDS, SLOWER = 0.5, 4.0
"""In slow start a rate grows e-fold in so long, in so many times as long where a bound is near."""
FIRST_SECONDS, HALVED = 0.5, 0.5
"""What was accepted in so long tells the first rate; slow start begins at this part of it (RFC 5681)."""
LONG_SECONDS = 10.0
"""A rate stays for so long at the most, and is let go where it was hardly used for so long."""
CLOSED = 0.9
"""A server that refuses a larger share lets nothing through."""
PAUSE_SECONDS, ASKED_MOST = 0.2, 10.0
"""How long it is left alone then, and how many times a second it is asked at the most: at a tenth of the rate."""
RANDOM = 0.2
"""A server that refuses a larger share means it."""
LOW, HIGH = 0.7, 3.0
"""The parts of the rate that was refused first at which no bound explains the same share of refusals."""
MUCH = 1.5
"""A rate that many times its bound has none any more, and is no even share of one."""


class Count(NamedTuple):
    """What came back in so many seconds."""

    seconds: float
    accepted: int
    refused: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.accepted + self.refused

    def is_above(self, share: float, errors: float = 0.0) -> bool:
        """Return whether a larger share was refused, by so many standard errors."""
        return self.refused - errors * math.sqrt(self.refused) > share * self.total

    @property
    def is_closed(self) -> bool:
        """Whether next to nothing was let through."""
        return self.refused >= FEW and self.is_above(CLOSED)


@dataclass(slots=True)
class LearnedRate:
    """What one operation may send to one server. Used on the event loop only. Times are seconds of one clock."""

    began: float
    """When the present tenth of a second began."""
    per_second: float | None = None
    """None: nothing is held back."""
    through: float = 0.0
    """Successes per second of the last second, while it is held back."""
    latency: float = 0.1
    """The seconds that successes took lately."""
    fair: float = 0.0
    """The even share of what the workers that are held back here get through; 0: there are no others."""
    turns: Turns = field(default_factory=lambda: Turns(BURST_SECONDS, LONGEST_TURN.total_seconds()))
    _phase: Literal["draining", "closed", "slow start", "cubic"] = "cubic"
    _tenths: deque[tuple[float, int, int]] = field(default_factory=lambda: deque[tuple[float, int, int]](maxlen=100))
    """When the last tenths of a second began, with their successes and refusals."""
    _accepted: int = 0
    _refused: int = 0
    _retry_after: float = 0.0
    _since: float = 0.0
    """When the phase began, or slow start grew last."""
    _settled: float = -math.inf
    """When what was sent before the last cut has come back."""
    _used_at: float = 0.0
    _bound: float = 0.0
    """Where the rate returns to; 0: unknown."""
    _lowest: float = LEAST
    """The rate after the last cut."""
    _cuts: int = 0
    """Since the rate was last at its bound: each is deeper, which evens the shares of a fleet."""
    _cost: float = 0.0
    """The refusals of the last cut; -inf where its rate was no more than a guess."""
    _opened: float = 0.0
    """When the server had nothing saved up: what it lets through from then until it refuses is its bound."""
    _accepted_since: int = 0
    _first: float = 0.0
    """The rate at which a small share was refused first; 0: none is."""
    _random: float = 0.0
    """The share that is refused at random, at the most."""

    @property
    def is_held_back(self) -> bool:
        """Whether a bound is known."""
        return self.per_second is not None and self._bound > 0

    def reserve(self, now: float) -> float:
        """Take a turn; return the seconds to wait for it, or more than LONGEST_TURN where none was taken."""
        return 0.0 if self.per_second is None else self.turns.reserve(now, self.per_second)

    def give_back(self) -> None:
        """Let another request have a turn that was taken last."""
        if self.per_second is not None:
            self.turns.give_back()

    def note_successes(self, count: int, seconds: float) -> None:
        """Take in so many successes, and the seconds that they took together."""
        self._accepted += count
        self.latency += min(0.5, 0.05 * count) * (seconds / count - self.latency)

    def note_refused(self, retry_after: float) -> bool:
        """Take a refusal in; return whether refusals have begun that should be heeded at once."""
        self._refused += 1
        self._retry_after = max(self._retry_after, retry_after)
        is_new = self.per_second is None and self._refused >= FEW
        return is_new and self._is_excess(Count(0.0, self._accepted, self._refused))

    def follow(self) -> None:
        """Go half of the way to an even share, which is most others' bound."""
        if self.per_second is None or not self._bound or self._phase == "closed":
            return
        if self.per_second > MUCH * self.fair:
            self._random = 0.0
        factor = 0.5 + 0.5 * self.fair / self.per_second
        self.per_second, self._lowest = max(LEAST, self.per_second * factor), max(LEAST, self._lowest * factor)
        self._bound = max(LEAST, self._bound * factor)

    def end_tenth(self, now: float) -> None:
        """Decide by what came back since the last tenth of a second ended."""
        tenth = Count(0.1, self._accepted, self._refused)
        self._tenths.append((self.began, *tenth[1:]))
        self.began, self._accepted, self._refused = now, 0, 0
        self._accepted_since += tenth.accepted
        if now <= self._settled or self._phase == "closed":
            self._cost += tenth.refused
        if self._retry_after and tenth.refused > tenth.accepted:  # a few refusals wait by themselves
            self.turns.hold_until(now + min(self._retry_after, LONGEST_RETRY_AFTER.total_seconds()))
        self._retry_after = 0.0
        if self.per_second is None:
            self._begin(now)
        else:
            second = self._count(now - 1.0)
            if second.accepted < WINDOW // 4:
                second = self._count(now - 5.0)
            self.through = second.accepted / max(1.0, second.seconds)
            {"draining": self._end_drain, "closed": self._ask}.get(self._phase, self._steer)(
                now, self.per_second, tenth
            )

    def _count(self, since: float) -> Count:
        """Return what came back in the tenths of a second that began at a moment or later."""
        accepted = refused = 0
        first = self.began
        for began, more, lost in reversed(self._tenths):
            if began < since - 1e-9:
                break
            first = began
            accepted += more
            refused += lost
        return Count(max(0.1, self.began - first), accepted, refused)

    def _is_excess(self, count: Count) -> bool:
        """Return whether more is refused than what is tolerated, and at random."""
        return count.refused > 1 and count.is_above(TOLERATED + self._random, 2.0 if self._random else 0.0)

    def _begin(self, now: float) -> None:
        """Send nothing for a round trip once too much is refused: what comes back meanwhile tells the bound."""
        last = self._count(now - max(0.25, min(1.0, 1.5 * self.latency)))
        self._lower_random(now)
        if self._is_excess(last):
            accepted = self._count(now - FIRST_SECONDS).accepted
            self.per_second, self._phase, self._since = max(LEAST, accepted / FIRST_SECONDS), "draining", now
            self._settled = now + max(0.1, min(0.5, 1.5 * self.latency))
            self.turns.hold_until(self._settled)
            self._opened, self._accepted_since, self._cost, self._bound, self._first = now, 0, -math.inf, 0.0, 0.0

    def _end_drain(self, now: float, rate: float, _: Count) -> None:
        if now < self._settled:
            return
        found = self._count(self._since)
        if found.is_closed and found.accepted < FEW:
            self._close(now, rate)
        elif found.is_above(RANDOM, 2.0):
            self._bound = rate
            self._search(HALVED * rate, now)
        else:
            self._search(max(rate, found.accepted / found.seconds), now)

    def _steer(self, now: float, rate: float, tenth: Count) -> None:
        """Cut or raise the rate, or let it go."""
        self._lower_random(now)
        last = self._count(max(self._settled, now - max(WINDOW_SECONDS, WINDOW / rate)))
        if last.seconds < 0.25 or last.total >= 0.6 * rate * last.seconds - 2:
            self._used_at = now
        if tenth.refused and (last.is_closed or (tenth.total >= WINDOW // 4 and tenth.is_closed)):
            self._close(now, rate)
        elif tenth.refused and self._is_excess(last):
            self._heed(now, rate, last)
        elif now - self._used_at > LONG_SECONDS:
            self.per_second = None
        elif self._used_at == now >= self._settled:
            self._raise(now, rate)

    def _raise(self, now: float, rate: float) -> None:
        if self._phase == "slow start":
            seconds = GROWTH_SECONDS * (SLOWER if self._bound else 1.0)
            self.per_second = rate * math.exp((now - self._since) / max(seconds, FEW / rate))
            if self.fair and self._bound:
                self.per_second = min(self.per_second, max(rate, MUCH * self.fair))
            self._since = now
            return
        to_come, below = 1 - (now - self._since) / RETURN_SECONDS, 1 - self._lowest / self._bound
        if to_come < 0:
            self._first, self._cuts, below = 0.0, 0, 1 - BETA
            stay = min(LONG_SECONDS, max(0.0, 2 * self._cost / (TOLERATED * self._bound) - RETURN_SECONDS))
            to_come = min(0.0, to_come + stay / RETURN_SECONDS)
        self.per_second = max(LEAST, self._bound * (1 - max(0.0, below) * to_come**3))
        if self.per_second > MUCH * self._bound:
            self._search(self.per_second, now)

    def _search(self, per_second: float, now: float) -> None:
        """Begin slow start."""
        self.per_second, self._phase, self._used_at = max(LEAST, per_second), "slow start", now
        self._cost = -math.inf
        self._settle(now)
        self._since = self._settled

    def _settle(self, now: float) -> None:
        self._settled = max(self._settled, now + 0.1 + min(0.5, 1.5 * self.latency))

    def _heed(self, now: float, rate: float, last: Count) -> None:
        """Take what is let through for the bound, unless refusals are at random, or may be."""
        is_small = not last.is_above(RANDOM)
        if is_small and self._first and self._is_unexplained(rate, last):
            if last.refused >= FEW and last.total >= WINDOW:
                self._random = (last.refused + math.sqrt(last.refused + 1)) / last.total
                self._search(max(rate, self._first), now)
                self._first = self._bound = 0.0
        elif is_small and self._phase == "slow start" and not self._bound:
            self._first = self._first or rate
            self._raise(now, rate)
        else:
            self._first = (self._first or rate) if is_small else 0.0
            self._cut(now, rate, last)

    def _is_unexplained(self, rate: float, last: Count) -> bool:
        """Return whether no bound explains a small share of refusals, since it was about the same at another rate."""
        if rate > HIGH * self._first:
            return last.accepted > LOW * HIGH * self._first * last.seconds
        return last.total / last.seconds < LOW * (min(self.fair, self._first) or self._first)

    def _lower_random(self, now: float) -> None:
        """Take in what is refused now: the share may be smaller, or gone."""
        last = self._count(max(self._settled, now - 3.0))
        if self._random and last.total >= WINDOW:
            most = (last.refused + 2 * math.sqrt(last.refused + 1)) / last.total
            self._random = min(self._random, most) if most > TOLERATED / 2 else 0.0

    def _cut(self, now: float, rate: float, last: Count) -> None:
        through, known = min(rate, last.accepted / last.seconds), self._known(now)
        self._cost = float(last.refused) if self._phase == "cubic" else -math.inf
        if last.is_above(RANDOM, 1.0):
            self._opened, self._accepted_since, known = now, 0, 0.0
        elif known:  # half of it is forgotten
            self._opened, self._accepted_since = (self._opened + now) / 2, self._accepted_since // 2
        self.hold_back(BELOW * max(through, known), now)
        if known:
            self._lowest = max(LEAST, min(self._lowest, rate * (1 - min(0.5, 0.05 * 2**self._cuts))))
            self.per_second = self._lowest
            self._cuts += 1

    def _known(self, now: float) -> float:
        """Return what the server has let through since it had nothing saved up, per second; 0: unknown."""
        seconds = now - WINDOW_SECONDS / 4 - self._opened
        return self._accepted_since / seconds if seconds > WINDOW_SECONDS / 2 else 0.0

    def hold_back(self, bound: float, now: float) -> None:
        """Cut the rate to a part of a bound, and let it return."""
        self._bound = max(LEAST, bound)
        self.per_second = self._lowest = max(LEAST, BETA * bound)
        self._phase, self._since, self._used_at = "cubic", now, now
        self._settle(now)

    def _close(self, now: float, rate: float) -> None:
        """Leave a server alone that lets nothing through, but for a request now and then."""
        if self._known(now):
            self._bound = min(rate, BELOW * self.through)
        else:  # it accepted nothing when it was open last
            self._bound = 0.6 * self._bound if self._bound > ASKED_MOST else 0.0
        self._cost = float(self._count(now - WINDOW_SECONDS / 4).refused) if self._phase == "cubic" else -math.inf
        self._phase, self._first, self._since = "closed", 0.0, now + PAUSE_SECONDS
        self.turns.hold_until(self._since)
        self._lowest = self.per_second = max(LEAST, min(ASKED_MOST, 0.1 * rate))

    def _ask(self, now: float, rate: float, tenth: Count) -> None:
        """Ask less often while the server refuses; go on when it does not."""
        if now < self._since + min(1.0, self.latency):
            return
        if tenth.accepted > tenth.refused or (not tenth.refused and now - self._since > RETURN_SECONDS):
            self._opened, self._accepted_since = now, tenth.accepted
            if self._bound:
                self.hold_back(self._bound, now)
            else:  # it counts what it refuses, and has worked that off
                refused = self._count(self._since - WINDOW_SECONDS).refused
                self._bound = max(self._lowest, refused / (now - self._since + PAUSE_SECONDS))
                self._search(BETA * self._bound, now)
        elif tenth.refused:
            self.per_second = max(LEAST, LOW * rate)
