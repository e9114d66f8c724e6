"""How many objects in flight pay: more as long as more of them get through, by Little's law.

Throughput is the number in flight divided by latency. So the target is raised, and what latency does is compared: where
it rises nearly as much as the load, throughput has stopped growing, whatever the reason (the server's queue, the link,
this process's own CPU). Every verdict is an experiment between neighbouring rounds. There is no best latency to
remember, so a server that becomes slower or faster for good misleads nothing.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rowferry_worker.pacing.latency import Change, Kind, Mean, compare

ROUGH = 0.1
"""A logarithm of the ratio of two loads below which they are taken to be the same."""
STOPS_ABOVE, STOPS_ABOVE_WIDER = 0.85, 0.7
"""Elasticity of latency to load that ends the doubling, over one round and over two: at 1 nothing is won."""
GROWS_BELOW, SHRINKS_ABOVE = 0.8, 0.92
"""Elasticity below which more in flight pays, and above which fewer cost nothing."""
KNEE_RESERVE = 1.5
"""Objects in flight after the doubling, as a multiple of what the throughput needed at the latency before."""
STEP = 1.5
"""The factor by which the target moves on after an experiment that was won."""
PROBE_AFTER, PROBE_AFTER_MOST = 2.0, 30.0
"""Seconds until the target is tried higher, then lower; doubled each time that nothing was won."""
CHANGED, NOTICED_SECONDS = math.log(1.5), 0.02
"""A change of latency that calls for an experiment at once, if it is so many seconds as well."""


class Round(NamedTuple):
    """What a round of responses has shown."""

    load: float
    """Objects in flight, on average."""
    means: dict[Kind, Mean]


@dataclass(slots=True)
class Climb:
    """The number of objects in flight that latency allows, from `least` to `most`. Times are seconds of one clock."""

    target: float
    least: float
    most: float
    growth: float = 2.0
    """The factor of each round at the start."""
    phase: Literal["doubling", "resting", "probing"] = field(init=False, default="doubling")
    moved_at: float = field(init=False, default=-math.inf)
    """When the target was last moved by an experiment: requests from before tell nothing of it."""
    _rounds: deque[Round] = field(init=False, default_factory=lambda: deque[Round](maxlen=4))
    _settling: int = field(init=False, default=0)
    """Rounds to let pass."""
    _reference: Round | None = field(init=False, default=None)
    """The round before the experiment, or since the last one."""
    _before_probe: float = field(init=False, default=0.0)
    _probe_at: float = field(init=False, default=0.0)
    _probe_after: float = field(init=False, default=PROBE_AFTER)
    _goes_up: bool = field(init=False, default=True)
    _is_suspicious: bool = field(init=False, default=False)
    """Whether the last round's latency was another, or the experiment is made because of that."""
    _is_slower_server: bool = field(init=False, default=False)
    """Whether latency has risen, and not by the load: more in flight may pay again."""

    def end_round(self, ended: Round, now: float) -> None:
        """Move the target by what a round has shown."""
        if self._settling:
            self._settling -= 1
            return
        self._rounds.append(ended)
        {"doubling": self._double, "resting": self._watch, "probing": self._judge}[self.phase](now)

    def forget_rounds(self) -> None:
        """Compare nothing with what was before: the load was not the target's."""
        self._rounds.clear()
        self._reference = None if self.phase == "resting" else self._reference

    def begin_at(self, target: float, now: float, *, doubling: bool) -> None:
        """Go on from another target."""
        self.target = min(self.most, max(self.least, target))
        self._rest(now)
        if doubling:
            self.phase = "doubling"

    def _double(self, now: float) -> None:
        """Multiply the target while that pays. A round's latency is that of the load of the round before."""
        one, two = self._elasticity(1), self._elasticity(2)
        if one.log_ratio - one.error > STOPS_ABOVE or two.log_ratio - two.error > STOPS_ABOVE_WIDER:
            load = self._rounds[-2].load
            change = compare(self._rounds[max(-3, -len(self._rounds))].means, self._rounds[-1].means)
            knee = load * math.exp(-change.log_ratio) if change else 0.0
            self.begin_at(max(KNEE_RESERVE * knee, load / 2), now, doubling=False)
        elif self.target < self.most:
            self.target = min(self.most, self.target * self.growth)
        else:
            self._rest(now)

    def _elasticity(self, back: int) -> Change:
        """Return d ln latency / d ln load over so many rounds; 0 where it cannot be told."""
        rounds = self._rounds
        if len(rounds) < back + 2:
            return Change(0.0, 0.0)
        ratio = math.log(rounds[-2].load / rounds[-2 - back].load)
        change = compare(rounds[-1 - back].means, rounds[-1].means)
        if change is None or ratio < ROUGH:
            return Change(0.0, 0.0)
        return Change(change.log_ratio / ratio, change.error / ratio)

    def _rest(self, now: float) -> None:
        """Keep the target for a while."""
        self.phase, self._reference, self._settling = "resting", None, 1
        self._is_suspicious = self._is_slower_server = False
        self._probe_at = now + self._probe_after
        self.moved_at = now
        self._rounds.clear()

    def _watch(self, now: float) -> None:
        """Look whether latency has changed, or whether it is time to try another target."""
        latest, reference = self._rounds[-1], self._reference
        change = compare(reference.means, latest.means) if reference else None
        if reference is None or change is None:
            self._reference = latest
            if self._is_slower_server:
                self._probe(now, latest, up=True)
            return
        has_changed = abs(change.log_ratio) > max(CHANGED, 3 * change.error) and _is_noticeable(reference, latest)
        if has_changed and self._is_suspicious:
            self._probe(now, latest, up=change.log_ratio < 0)
        elif now >= self._probe_at:
            self._is_suspicious = False
            self._probe(now, latest, up=self._goes_up)
        else:
            self._is_suspicious = has_changed

    def _probe(self, now: float, reference: Round, *, up: bool, step: float | None = None) -> None:
        """Try another target: the fewer samples a round has, the farther."""
        if step is None:
            step = 2.0 if self.target <= 64 else 1.5 if self.target <= 256 else 1.25
        probed = min(self.target * step, self.most) if up else max(self.target / step, self.least)
        self._goes_up = not up
        if abs(probed - self.target) < 1:
            self._rest(now)
            return
        self._before_probe, self.target = self.target, probed
        self.phase, self._reference, self._settling, self.moved_at = "probing", reference, 1, now
        self._rounds.clear()

    def _judge(self, now: float) -> None:
        """Keep the target that is tried if it pays, and try the next; or go back."""
        went_up = self.target > self._before_probe
        assert self._reference is not None
        if _is_won(self._reference, self._rounds[-1], went_up=went_up):
            self._probe_after = PROBE_AFTER
            self._probe(now, self._rounds[-1], up=went_up, step=STEP)
            return
        self.target = self._before_probe
        is_slower_server = self._is_suspicious and not went_up
        if not is_slower_server:
            self._probe_after = min(2 * self._probe_after, PROBE_AFTER_MOST)
        self._rest(now)
        self._is_slower_server = is_slower_server


def _is_won(before: Round, after: Round, *, went_up: bool) -> bool:
    """Return whether more in flight got more through, or fewer in flight cost nothing."""
    change, ratio = compare(before.means, after.means), math.log(after.load / before.load)
    if change is None or abs(ratio) < ROUGH or (ratio > 0) != went_up:
        return False
    if went_up:
        return change.log_ratio - change.error < GROWS_BELOW * ratio
    return change.log_ratio < SHRINKS_ABOVE * ratio


def _is_noticeable(before: Round, after: Round) -> bool:
    """Return whether any kind of request takes more than some milliseconds more or less."""
    return any(
        kind in before.means and abs(mean.seconds - before.means[kind].seconds) > NOTICED_SECONDS
        for kind, mean in after.means.items()
    )
