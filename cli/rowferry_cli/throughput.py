"""How fast a run goes, what it has done so far, and how long the rest takes."""

from dataclasses import dataclass
from datetime import timedelta

from rowferry.formatting import format_duration, format_rate
from rowferry.queue_spec import Words
from rowferry.reports.progress import Counts

FEW = 100
SOON = timedelta(seconds=20)
"""Fewer entries within less time tell nothing of those that follow: connections open, and bounds climb."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """The counts of a run so far, and its rate."""

    counts: Counts
    elapsed: timedelta
    words: Words
    """How the queue speaks of what it has done."""
    queue: str

    @property
    def summary(self) -> str:
        """Return what was done so far, in the queue's terms, and what is done of the batches that are open."""
        counts = self.counts
        done = {str(outcome): count for outcome, count in counts.outcomes.items()}
        deed = self.words.deed.format(finished=counts.finished, updated=counts.migrated + counts.kept, **done)
        return f"{deed}, {counts.in_hand:,} more in open batches" if counts.in_hand else deed

    @property
    def rate(self) -> float:
        """Return entries per second since the start."""
        return self.counts.worked_off / max(self.elapsed.total_seconds(), 0.001)

    @property
    def time_left(self) -> timedelta | None:
        """Return the estimated time for what is left; None before enough is worked off to tell.

        Enough are FEW entries, a tenth of all, or what was worked off in SOON. What a dead worker had in hand counts:
        it is found again at once.
        """
        counts = self.counts
        reached = counts.finished + counts.in_hand
        is_early = reached < min(FEW, counts.entries / 10) and self.elapsed < SOON
        return (counts.waiting - counts.in_hand) / reached * self.elapsed if reached and not is_early else None

    def __str__(self) -> str:
        """Return the progress as one line."""
        counts, left = self.counts, self.time_left
        if not counts.batches:
            return f"No entries: the queue {self.queue} had nothing to do ({self.elapsed.total_seconds():.2f} s)"
        line = (
            f"Progress {counts.percent:3}%, batches processed {counts.batches - counts.batches_init}/{counts.batches}, "
            f"{self.summary}, elapsed time {self.elapsed.total_seconds():.2f} s"
        )
        line = f"{line}, {format_rate(self.rate)} entries/s" if self.rate or not counts.waiting else line
        return line if left is None or not counts.waiting else f"{line}, time left {format_duration(left)}"
