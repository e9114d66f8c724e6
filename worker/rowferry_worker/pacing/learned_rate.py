"""The rate of one operation on one server, learned from its refusals: none until it refuses.

What a server lets through while it refuses is its bound, or this worker's part of it. So the rate is cut to that at
once, kept a little below, and raised slowly until a few requests are refused again: additively and multiplicatively,
so that workers that share a bound come to even shares (Chiu and Jain, "Analysis of the Increase and Decrease Algorithms
for Congestion Avoidance", 1989). How fast it is raised after a long time without refusals follows CUBIC (RFC 9438).
"""

import math
from dataclasses import dataclass, field

from rowferry_worker.pacing.habit import EXPERIMENT, EXPERIMENT_AFTER, LOW_SECONDS, GrowthTest, LetThrough, Window
from rowferry_worker.pacing.rate_limit import Turns
from rowferry_worker.pacing.tenths import TENTH_SECONDS, Tenth, Tenths

BURST_SECONDS = 0.02
"""How much of an unused moment is caught up with: small buckets must not overflow."""
LONGEST_SECONDS = 5.0
"""No turn is waited for longer: by then the rate may be another."""
TOLERATED = 0.01
"""The share of refusals that is the price of probing."""
BELOW = 0.98
"""The part of what was let through that is used."""
CALM = 0.6
"""Requests a second that a cut takes at least, so that a slow worker probes no more often than a fast one."""
PROBING, PROBING_EACH = 0.004, 0.03
"""Growth per second: a share, and requests a second that are the same for every worker."""
BOLDER_AFTER, PROBING_MOST = 4.0, 0.2
"""Seconds without a refusal after which growth becomes faster, since the bound may have gone; and its share at most."""
CATCHING_UP = 0.2
"""Growth per second, as a share, of a worker that has much less than an even share."""
SEARCHING, RECOVERY = 1.0, 0.5
"""Growth per second, as a share: until refusals come a second time, and back to what was let through before."""
HABIT_MOST = 0.3
"""A server that refuses a larger share is taken to mean it."""
LEAST_AMONG = 0.03
"""The same share for a worker among others: less is what probing costs them."""
EVIDENCE, HABIT_SAMPLES = 4, 60
"""Refusals at a low rate that make a habit, and requests that show that it is a smaller one."""
UNUSED, UNUSED_SECONDS = 0.6, 5.0
"""A rate of which less is used for so long is not what limits the pace, and is let go."""
MORE_THAN_FAIR = 1.25
"""A worker with so many times the even share leaves a part of it to the others at each heartbeat."""
STEP_TO_FAIR = 0.7
"""The part of its rate that such a worker keeps at a heartbeat, until the others have taken the rest."""
LEAST = 1.0
"""Requests per second that are always tried."""


@dataclass(slots=True)
class LearnedRate:
    """What one operation may send to one server. Used on the event loop only. Times are seconds of one clock."""

    began: float
    per_second: float | None = None
    """None: nothing is held back."""
    fair: float | None = None
    """The even share of what all workers that are held back here get through together, if that is known."""
    is_new: bool = False
    """Whether the rate tells nothing yet of how many in flight it needs."""
    through: float = 0.0
    """Successes per second of the last second, while it is held back."""
    latency: float = 0.1
    """The seconds that successes took lately."""
    let_through: LetThrough = field(default_factory=LetThrough)
    waited: float = 0.0
    """Seconds that turns waited in all since this was last set to 0, and ..."""
    reserved: int = 0
    """... how many turns."""
    _tenths: Tenths = field(init=False)
    _turns: Turns = field(default_factory=lambda: Turns(BURST_SECONDS, LONGEST_SECONDS))
    _retry_after: float = 0.0
    _cut_at: float = -math.inf
    _calm_at: float = 0.0
    """When the last cut was long ago."""
    _refused_at: float = -math.inf
    _unused_since: float | None = None
    _is_searching: bool = False
    _known: float = 0.0
    """What was let through per second when the rate was last cut."""
    _good: float = 0.0
    """What was let through per second while less than half was refused, less with time."""
    _before_silence: float = 0.0
    """What was let through per second before all was refused; 0 while something is let through."""
    _growth_test: GrowthTest = field(default_factory=GrowthTest)
    _habit: float = 0.0
    """The share that is refused however slow the requests come."""

    def __post_init__(self) -> None:
        """Begin to count."""
        self._tenths = Tenths(self.began)

    def reserve(self, now: float) -> float:
        """Take a turn; return the seconds to wait for it."""
        if self.per_second is None:
            return 0.0
        wait = self._turns.reserve(now, self.per_second)
        self.waited += wait
        self.reserved += 1
        return wait

    def note_success(self, seconds: float) -> None:
        """Take a success in."""
        self._tenths.accepted += 1
        self.latency += 0.05 * (seconds - self.latency)

    def note_refused(self, now: float, retry_after: float) -> bool:
        """Take a refusal in; return whether refusals have begun that should be heeded at once."""
        self._tenths.refused += 1
        self._refused_at = now
        self._retry_after = max(self._retry_after, retry_after)
        accepted, refused = self._tenths.accepted, self._tenths.refused
        return self.per_second is None and refused >= EVIDENCE and self._is_excess(accepted, refused)

    def hold_back(self, per_second: float) -> None:
        """Begin at a rate that other workers have found."""
        self.per_second = self._known = max(LEAST, per_second)

    def follow(self, fair: float) -> None:
        """Take for a bound what most other workers do, and leave them what is more than an even share."""
        now = self._tenths.began
        if self.per_second is None and self._habit:
            own, self._known, self._is_searching = self._tenths.accepted_per_second(now), fair, False
            self._set(max(fair, STEP_TO_FAIR * own), now)
            self.let_through.begin(now)
        elif self.per_second is not None and self.per_second > MORE_THAN_FAIR * fair:
            self._known = self.per_second = max(fair, STEP_TO_FAIR * self.per_second)
        else:
            return
        self._habit = 0.0

    def end_tenth(self, now: float) -> None:
        """Decide by what came back since the last tenth ended."""
        tenth = self._tenths.end(now)
        if self._retry_after and tenth.refused > tenth.accepted:  # a few refusals wait by themselves
            self._turns.hold_until(now + self._retry_after)
        self._retry_after = 0.0
        if self._habit:
            _, accepted, refused = self._tenths.count(max(now - 3.0, self._cut_at + self.latency))
            if accepted + refused >= HABIT_SAMPLES:
                self._habit = min(self._habit, (refused + 2 * math.sqrt(refused + 1)) / (accepted + refused))
                if self._habit < TOLERATED / 2:
                    self._habit = 0.0
        if tenth.accepted > tenth.refused:
            self._good = max(0.995 * self._good, self._tenths.accepted_per_second(now))
        if self.per_second is None:
            self._learn(now)
        else:
            self.let_through.note(now, tenth.accepted)
            self.through = self._tenths.accepted_per_second(now)
            self._steer(now, self.per_second, tenth)

    def _is_excess(self, accepted: int, refused: int) -> bool:
        """Return whether more is refused than what is tolerated, and by habit."""
        least = refused - 3 * math.sqrt(refused) if self._habit else refused
        return least > (TOLERATED + 1.2 * self._habit) * (accepted + refused)

    def _learn(self, now: float) -> None:
        """Begin to hold back when too large a share is refused."""
        seconds, accepted, refused = self._tenths.count(now - min(1.0, max(0.25, 1.5 * self.latency)))
        if refused < 2 or not self._is_excess(accepted, refused):
            return
        window = Window(max(seconds, 0.05), accepted, refused)
        if self.fair is None and self._growth_test.goes_on(now, window, self.latency):
            if self._growth_test.is_won(window, is_alone=self.let_through.is_alone):
                self._habit = self._growth_test.find_share(self._tenths)
            return
        is_unclear = self._growth_test.has_begun
        self._growth_test.end(now, self._tenths.accepted_per_second(now))
        self._is_searching = True
        self._set(max(BELOW * window.accepted / window.seconds, 0.1 * self._good), now)
        self.let_through.begin(now)
        self._calm_at = now - EXPERIMENT_AFTER if is_unclear else now

    def _set(self, per_second: float, now: float) -> None:
        self.per_second, self._cut_at, self._unused_since = max(LEAST, per_second), now, None

    def _steer(self, now: float, rate: float, tenth: Tenth) -> None:
        """Cut or raise the rate, or let it go."""
        if self._before_silence and self._tenths.last_accepted:  # the server is back
            self._known, self._before_silence = self._before_silence, 0.0
            rate = self.per_second = max(rate, 0.5 * self._known)
            self._cut_at, self._refused_at, self._unused_since, self.is_new = now, -math.inf, None, True
            return
        seconds, accepted, refused = self._tenths.count(max(now - 3.0, self._cut_at + min(1.0, self.latency)))
        is_tried = self.let_through.is_alone and self._growth_test.is_due(now, rate, tenth)
        if is_tried or self._is_habit(now, rate) or self._is_unused(now, rate, seconds, accepted + refused):
            self.per_second = None
        elif tenth.refused and self._is_excess(accepted, refused):
            self._cut(now, rate, accepted, refused)
        else:
            if now - self._cut_at > 1.0:
                self._calm_at = now
            if self._unused_since is None:
                self.per_second = rate * (1 + self._growth(now, rate) * min(tenth.seconds, 1.0))

    def _is_habit(self, now: float, rate: float) -> bool:
        """Return whether requests are refused although far fewer come than were let through; note what share."""
        low_since = self.let_through.find_low_since(now, rate)
        if low_since is None or now - low_since < LOW_SECONDS + self.latency:
            return False
        _, accepted, refused = self._tenths.count(low_since + self.latency)
        least = TOLERATED / 2 if self.let_through.is_alone else LEAST_AMONG
        if refused < EVIDENCE or not least < refused / (accepted + refused) < HABIT_MOST:
            return False
        self._habit, self._is_searching = refused / (accepted + refused), True
        return True

    def _growth(self, now: float, rate: float) -> float:
        """Return by what share a second the rate grows: faster where it is small, so that shares become even."""
        quiet = now - (self._cut_at if self._habit else max(self._cut_at, self._refused_at))
        if quiet > 2 * TENTH_SECONDS:
            if self._is_searching:
                return SEARCHING
            if rate < 0.95 * self._known:
                return RECOVERY
        growth = PROBING + PROBING_EACH / rate
        if quiet > BOLDER_AFTER:
            return min(PROBING_MOST, growth * (1 + (quiet - BOLDER_AFTER) ** 2))
        if self.fair is not None:
            return 0.0 if rate > 1.1 * self.fair else growth + CATCHING_UP * max(0.0, 1 - rate / self.fair)
        return growth

    def _cut(self, now: float, rate: float, accepted: int, refused: int) -> None:
        """Go to what is let through. One refusal among few requests proves little, so its error is subtracted."""
        count = accepted + refused
        if not accepted and self._tenths.count(now - 1.0)[1] == 0:
            self._before_silence = self._good
        factor = (1 - (refused - math.sqrt(refused)) / count) * max(0.95, min(BELOW, 1 - CALM / rate))
        if self.fair is not None and rate > 1.1 * self.fair:
            factor *= 1 - 0.1 * min(1.0, rate / max(self.fair, LEAST) - 1)
        least = 0.5 * self.through  # a quota of a second that is used up refuses all for the rest of it
        if refused < HABIT_MOST * count:
            least = max(least, self.let_through.least)
            if now - self._calm_at > EXPERIMENT_AFTER and self.let_through.is_alone:
                factor = min(factor, EXPERIMENT * (self.let_through.best or rate) / rate)
        self._known = min(rate, max(self.through, rate * (1 - refused / count)))
        self._is_searching = False
        self._set(min(rate, max(rate * factor, least)), now)

    def _is_unused(self, now: float, rate: float, seconds: float, count: int) -> bool:
        """Return whether something else has limited the pace for long."""
        if seconds < 0.5 or rate * seconds < 5 or count >= UNUSED * rate * seconds:
            self._unused_since = None
            return False
        self._unused_since = self._unused_since or now
        return now - self._unused_since > UNUSED_SECONDS
