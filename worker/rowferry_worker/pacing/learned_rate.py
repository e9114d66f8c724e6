"""The rate of one operation on one server, learned from its refusals: none until it refuses.

The rate is searched for as in TCP's slow start (RFC 5681), cut while too much is refused (cuts.py), and then returns to
just below what was refused, stays there, and is raised again slowly (recovery.py). How long it stays follows from what
the last probe cost, so that about one request in a hundred is refused, whatever the server counts: the requests that it
lets through or all of them, of the last second or of more.

The constants were found in the simulator, by the shapes of ADR 19.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from rowferry.s3.retry import LONGEST_RETRY_AFTER, LONGEST_TURN
from rowferry_worker.pacing.cuts import LEAST, MORE_THAN_FAIR, Cuts
from rowferry_worker.pacing.evidence import WINDOW_SECONDS, Count, Evidence
from rowferry_worker.pacing.habit import FEW as HABIT_FEW
from rowferry_worker.pacing.habit import MOST as HABIT_MOST
from rowferry_worker.pacing.rate_limit import Turns, Waits
from rowferry_worker.pacing.recovery import BELOW, Recovery
from rowferry_worker.pacing.reopening import Reopening
from rowferry_worker.pacing.tenths import TENTH_SECONDS, Tenth, Use

BURST_SECONDS = 0.04
"""How much of an unused moment is caught up with: small buckets must not overflow."""
URGENT = 4
"""Refusals in a tenth of a second that are heeded at once while no rate is known."""
PAUSE_SECONDS = 0.2
"""How long nothing is sent to a server that counts what it refuses, so that it forgets what was too much."""
RESUMED = 0.85
"""The part of a known rate that a worker resumes with."""
LIGHT, LIGHT_SECONDS, LIGHT_LEAST = 0.5, 0.5, 0.5
"""A smaller share leads to a cut only every so often; while it may be a habit, not below this part of the rate."""
NO_HABIT = 0.3
"""A share of refusals that is none."""
CALM_SECONDS, CALM, CALM_LEAST = 0.5, 8.0, 3.0
"""Refusals have ended when none has come for so long, and among so many requests; among fewer where a second has
fewer."""
CALM_MOST_SECONDS = 3.0
"""So long without a refusal is enough in any case."""
SEARCH_SECONDS, SEARCH_STEP = 0.6, 0.3
"""A rate that is searched for grows e-fold in so many seconds, in one step by that of so many."""
RESEARCH_SECONDS = 1.0, 8.0
"""The same once a server has let nothing through, and once it is known what it lets through until then."""
SEARCH_LONGEST, SEARCH_LATENCIES = 1.5, 6.0
"""So many seconds, and round trips, it grows although a few are refused, which may be a habit."""
EVENING, EVENING_LEAST, EVENING_MOST = 0.5, 0.5, 2.0
"""The part of the way to an even share that a worker goes at each heartbeat, and its bounds."""
HELD_SECONDS, HELD_LESS = 1.0, 0.99
"""A rate that was held so long is known; the part of it that is remembered after each second."""
THROUGH_LEAST, THROUGH = 0.5, 0.85
"""The parts of what was let through in the last second below which no cut leads, and below which no rate returns."""
HELD_LEAST = 0.65
"""The part of it below which a worker that is alone does not go while few are refused, ..."""
HELD_REFUSED = 0.97
"""... and the part of it that is remembered after each tenth of a second in which they are: it may have fallen."""
FAIRS, FALLEN = 6, 0.7
"""An even share that is less than this part of one of the last ones has fallen: no bound explains it."""
SECOND = 1.2
"""What a worker gets through is told again when it has been let through for so many seconds: others go by that."""
MUCH = 1.5
"""A worker with so many times an even share has taken the bound that most others meet for a habit."""


@dataclass(slots=True)
class LearnedRate:
    """What one operation may send to one server. Used on the event loop only. Times are seconds of one clock."""

    began: float
    is_alone: bool = True
    """Whether no other worker is live, or held back here, as far as is known."""
    lonely_beats: int = 0
    """Heartbeats in a row that told of no other worker that is held back here."""
    per_second: float | None = None
    """None: nothing is held back."""
    fair: float | None = None
    """The even share of what all workers that are held back here get through together, if that is known."""
    is_new: bool = False
    """Whether the rate tells nothing yet of how many in flight it needs."""
    through: float = 0.0
    """Successes per second of the last second, while it is held back."""
    waits: Waits = field(default_factory=Waits)
    _evidence: Evidence = field(init=False)
    _phase: Literal["searching", "closed", "cutting", "holding"] = "holding"
    _turns: Turns = field(default_factory=lambda: Turns(BURST_SECONDS, LONGEST_TURN.total_seconds()))
    _cuts: Cuts = field(default_factory=Cuts)
    _recovery: Recovery = field(default_factory=lambda: Recovery(0.0, LEAST, LEAST, LEAST))
    _use: Use = field(default_factory=Use)
    _retry_after: float = 0.0
    _search_began: float = 0.0
    _has_success: bool = False
    """Whether something was let through since the search began."""
    _reopening: Reopening = field(init=False)
    _refused_rate: float = LEAST
    """The rate of the requests that were refused when it was cut last."""
    _cost: int = 0
    """Requests that were refused since the server let nothing through."""
    _successes: int = 0
    """Since the last refusal."""
    _held: float = 0.0
    """What was let through at a known rate lately, at the most; less with time."""
    _fairs: deque[float] = field(default_factory=lambda: deque[float](maxlen=FAIRS))
    """The last even shares that were heard of."""

    def __post_init__(self) -> None:
        """Begin to count."""
        self._evidence = Evidence(self.began)
        self._reopening = Reopening(self.began)

    @property
    def latency(self) -> float:
        """The seconds that successes took lately."""
        return self._evidence.latency

    @property
    def is_held_back(self) -> bool:
        """Whether a bound is known: a rate that is searched for at first may find that there is none."""
        return self.per_second is not None and not (self._phase == "searching" and self._reopening.is_first)

    def reserve(self, now: float) -> float:
        """Take a turn; return the seconds to wait for it, or more than LONGEST_TURN where none was taken."""
        if self.per_second is None:
            return 0.0
        wait = self._turns.reserve(now, self.per_second)
        self.waits.note(wait)
        return wait

    def give_back(self) -> None:
        """Let another request have a turn that was taken last."""
        if self.per_second is not None:
            self._turns.give_back()

    def note_success(self, seconds: float) -> None:
        """Take a success in."""
        self._evidence.tenths.accepted += 1
        self._evidence.latency += 0.05 * (seconds - self._evidence.latency)

    def note_refused(self, now: float, retry_after: float) -> bool:
        """Take a refusal in; return whether refusals have begun that should be heeded at once."""
        self._reopening.refused_at = now
        tenths = self._evidence.tenths
        tenths.refused += 1
        self._retry_after = max(self._retry_after, retry_after)
        if self.per_second is not None or tenths.refused < URGENT:
            return False
        return self._evidence.is_excess(tenths.accepted, tenths.refused, None)

    def hold_back(self, per_second: float) -> None:
        """Begin at a rate that other workers have found."""
        self._hold(max(LEAST, per_second), self._evidence.tenths.began)

    def follow(self, fair: float) -> None:
        """Go a part of the way to an even share; begin with it where the bound of most others was taken for a habit."""
        self._fairs.append(fair)
        habit = self._evidence.habit
        if habit.share and (self.per_second is None or self.per_second > MUCH * fair):
            habit.forget()
            if self.per_second is None:
                self.hold_back(fair)
        if self.per_second is not None and self.is_held_back and self._phase != "closed":
            step = 1 + EVENING * (fair / self.per_second - 1)
            factor = max(EVENING_LEAST, min(EVENING_MOST, step))
            factor = max(LEAST, self.per_second * factor) / self.per_second
            self.per_second *= factor
            self._recovery = self._recovery.scaled(factor)
            self._cuts.scale(factor)
            self._reopening.scale(factor)

    def end_tenth(self, now: float) -> None:
        """Decide by what came back since the last tenth ended."""
        tenth = self._evidence.end_tenth(now)
        if self._retry_after and tenth.refused > tenth.accepted:  # a few refusals wait by themselves
            self._turns.hold_until(now + min(self._retry_after, LONGEST_RETRY_AFTER.total_seconds()))
        self._retry_after = 0.0
        self._reopening.note(now, tenth.accepted / (1 - self._evidence.habit.share), tenth.refused)
        if self.per_second is None:
            self._learn(now)
        else:
            if self._phase != "closed" and now - self._reopening.since > SECOND:
                self.through = self._evidence.tenths.accepted_per_second(now)
            self._steer(now, self.per_second, tenth)

    def _learn(self, now: float) -> None:
        """Begin to hold back when too large a share is refused."""
        since = now - min(1.0, max(0.25, 1.5 * self.latency))
        seconds, accepted, refused = self._evidence.tenths.count(since)
        if refused < 2 or not self._evidence.is_excess(accepted, refused, None):
            return
        through, sent = accepted / max(seconds, 0.25), (accepted + refused) / max(seconds, 0.25)
        self._search(max(BELOW * through, 0.1 * sent), now)
        self._evidence.cut_at, self._has_success = now, False
        self._reopening = Reopening.before(now, self._evidence.tenths)
        self._evidence.habit.begin(through, accepted, refused)

    def _search(self, per_second: float, now: float) -> None:
        self.per_second, self._phase, self._search_began = max(LEAST, per_second), "searching", now
        self._use.begin()

    def _hold(self, per_second: float, now: float, recovery: Recovery | None = None) -> None:
        self.per_second, self._phase = per_second, "holding"
        self._recovery = recovery or Recovery(now, per_second, per_second, per_second)
        self._use.begin()

    def _steer(self, now: float, rate: float, tenth: Tenth) -> None:
        """Cut or raise the rate, or let it go."""
        if self._phase == "closed":
            self._wait(now, rate, tenth)
            return
        last = self._evidence.count_last(now, rate)
        self._cuts.note(tenth.refused)
        self._has_success = self._has_success or (self._phase == "searching" and last.accepted > last.refused)
        if tenth.refused and last.refused and self._evidence.is_excess(last.accepted, last.refused, rate):
            self._successes = 0
            self._heed(now, rate, tenth)
            return
        self._successes = 0 if tenth.refused else self._successes + tenth.accepted
        if self._phase == "cutting":
            self._end_cuts(now, rate)
        self._go_on(now, rate, tenth)

    def _go_on(self, now: float, rate: float, tenth: Tenth) -> None:
        """Raise the rate, or let it go where it is not used."""
        is_searching = self._phase == "searching"
        last = self._evidence.count(now - (SEARCH_STEP + tenth.seconds if is_searching else WINDOW_SECONDS))
        if self._use.is_over(now, rate, last.seconds, last.accepted + last.refused):
            self.per_second = None
        elif not self._use.is_low:
            self._raise(now, rate, tenth)

    def _raise(self, now: float, rate: float, tenth: Tenth) -> None:
        if self._phase == "searching":
            self.per_second = rate * math.exp(min(tenth.seconds, SEARCH_STEP) / self._search_seconds)
        elif self._phase == "holding":
            self.per_second = self._recovery.find_rate(now)
        if self._phase in {"cutting", "holding"} and now - self._evidence.cut_at > HELD_SECONDS:
            self._held = max(HELD_LESS**tenth.seconds * self._held, min(rate, self.through))

    def _heed(self, now: float, rate: float, tenth: Tenth) -> None:
        """Too much is refused: by habit, by a server that counts all, while a bound is looked for, or at the bound."""
        evidence, recent = self._evidence, self._evidence.count_recent(now, rate)
        is_untried = self._phase == "searching" and not self._has_success
        fair, has_fallen = 0.0 if self.is_alone else self.fair, self._has_fallen
        if evidence.habit.is_found(now, rate, evidence.tenths, fair, has_fallen=has_fallen):
            self._fairs.clear()
            self._held = 0.0
            self._reopening = Reopening.before(now, evidence.tenths)
            self._search(max(rate, evidence.habit.began_at), now)
        elif recent.is_closed or Count(*tenth[1:]).is_closed or (is_untried and recent.is_above(0.5)):
            self._close(now, rate, recent)
        elif self._may_search_on(now, recent):
            evidence.habit.begin_once(rate, recent.accepted, recent.refused)
            self._go_on(now, rate, tenth)
        else:
            self._cut(now, rate, recent)

    @property
    def _has_fallen(self) -> bool:
        """Whether this worker, or where there are others all together, gets through much less than a while ago."""
        if self.is_alone:
            return (self.per_second or math.inf) < FALLEN * self._held
        return bool(self._fairs) and self._fairs[-1] < FALLEN * max(self._fairs)

    def _may_search_on(self, now: float, recent: Count) -> bool:
        """Return whether so few are refused, and since so short a time, that it may be a habit."""
        is_early = now - self._search_began < SEARCH_LONGEST + SEARCH_LATENCIES * self.latency
        return self._phase == "searching" and is_early and self._reopening.is_first and recent.sure_share < HABIT_MOST

    def _close(self, now: float, rate: float, recent: Count) -> None:
        """Leave a server alone that lets nothing through, but for a request now and then."""
        self._evidence.habit.end()
        self._reopening.close(self._find_earlier(now, rate))
        self._cost = recent.refused
        self._phase = "closed"
        self._evidence.paused_until = now + PAUSE_SECONDS
        self._turns.hold_until(self._evidence.paused_until)
        self._ask(now, self._reopening.asked)

    def _wait(self, now: float, rate: float, tenth: Tenth) -> None:
        """Ask less often while the server refuses; go on when it does not."""
        self._cost += tenth.refused
        if now < self._evidence.paused_until + min(1.0, self.latency):
            return
        quiet = now - max(self._reopening.refused_at, self._evidence.paused_until)
        if tenth.accepted > tenth.refused or (not tenth.refused and quiet > CALM_MOST_SECONDS):
            self._open(now, tenth.accepted)
        elif tenth.refused:
            self._ask(now, self._reopening.ask_less(rate))

    def _ask(self, now: float, per_second: float) -> None:
        self.per_second, self._evidence.cut_at = max(LEAST, per_second), now
        self._use.begin()

    def _open(self, now: float, accepted: int) -> None:
        """Go on: the server lets requests through again."""
        rate, ceiling, is_known = self._reopening.resumption
        rate = max(LEAST, rate)
        self._reopening.open(now, accepted)
        self._successes, self.is_new, self._evidence.cut_at = 0, True, now
        if is_known:
            if self.fair is not None:
                ceiling = min(ceiling, MORE_THAN_FAIR * self.fair)
            lowest = max(LEAST, RESUMED * rate)
            self._hold(lowest, now, Recovery.after(now, lowest, rate, ceiling, self._cost))
        else:
            self._search(rate, now)

    @property
    def _search_seconds(self) -> float:
        if self._reopening.is_first:
            return SEARCH_SECONDS
        return RESEARCH_SECONDS[self._reopening.let_through > 0]

    def _find_earlier(self, now: float, rate: float) -> float:
        """Return the rate of the requests that are refused just now."""
        delay = TENTH_SECONDS + min(1.0, self.latency)
        if self._phase == "searching":
            return rate * math.exp(-delay / self._search_seconds)
        if self._phase == "holding":
            return min(rate, self._recovery.find_rate(max(self._recovery.since, now - delay)))
        if self._phase == "cutting" and now - self._evidence.cut_at < delay + TENTH_SECONDS:
            return self._refused_rate
        return rate

    def _cut(self, now: float, rate: float, recent: Count) -> None:
        """Go below what is let through."""
        habit, share = self._evidence.habit, recent.sure_share
        if share > NO_HABIT:
            habit.end()
        least = LIGHT_LEAST * habit.began_at if habit.is_possible else LEAST
        least = max(least, THROUGH_LEAST * self.through)
        if self.is_alone and share < NO_HABIT:
            least = max(least, HELD_LEAST * self._held)
        is_soon = now - self._evidence.cut_at < LIGHT_SECONDS
        if share < LIGHT and (rate <= least or is_soon or not self._is_weighed(rate)):
            self._held *= HELD_REFUSED
            return
        if self._phase != "cutting":
            self._cuts.begin(rate, recent.refused, is_searched=self._phase == "searching")
        if self._phase == "holding":
            self._doubt(now, rate)
        self._refused_rate = self._find_earlier(now, rate)
        if recent.refused == 1 and self.is_alone:
            self._begin_cut(now, self._cuts.cut_once(rate, least))
        else:
            self._begin_cut(
                now, self._cuts.cut_by(share, rate, least, max(self._reopening.known, THROUGH * self.through))
            )

    def _doubt(self, now: float, rate: float) -> None:
        """Note where refusals have begun at a known rate: if the rate falls and they go on, they are a habit."""
        habit = self._evidence.habit
        if rate >= habit.began_at:
            habit.end()
        if not habit.is_possible:
            last = self._evidence.count_last(now, rate)
            habit.begin(rate, last.accepted, last.refused)

    def _is_weighed(self, rate: float) -> bool:
        """Return whether it is known how large a share is refused after the first cut, where that can be known soon."""
        if self._phase == "holding" or rate < HABIT_FEW:
            return True
        _, accepted, refused = self._evidence.count()
        return self._evidence.habit.begin_once(rate, accepted, refused)

    def _begin_cut(self, now: float, per_second: float) -> None:
        self.per_second, self._phase, self._evidence.cut_at = per_second, "cutting", now
        self._reopening.resumed = min(self._reopening.resumed, per_second)
        self._use.begin()

    def _end_cuts(self, now: float, rate: float) -> None:
        """Let the rate recover where refusals have ended."""
        quiet = now - max(self._evidence.cut_at, self._evidence.paused_until)
        enough = self._evidence.habit.tell(max(CALM_LEAST, min(CALM, rate)))
        is_calm = quiet > CALM_SECONDS and self._successes >= enough
        if is_calm:
            self._evidence.habit.end()
        if is_calm or quiet > CALM_MOST_SECONDS:
            self._hold(rate, now, self._cuts.recover(now, rate, self.fair))
