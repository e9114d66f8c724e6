"""One run of one scenario: its seed and length, and what is counted on the way."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.s3.buckets import find_versitygw
from torture.builder import make_world
from torture.world import World

WITHOUT_VERSITYGW = "versitygw is not here: against moto, which checks neither signatures nor checksums"


def say_nothing(_: str) -> None:
    """Take progress without showing it."""


@dataclass
class Run:
    """What a scenario is given; it counts its faults, its worlds count the rest."""

    name: str
    seed: int
    short: bool = False
    """Well under a minute on a quiet machine, as `make test-all` wants it."""
    say: Callable[[str], None] = say_nothing
    """Shows one line of progress."""
    promised: Collection[str] = ()
    """Kinds of faults of which each run of the scenario sees one at least, however slow the machine is."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that came to pass, by kind ("SIGKILL"): seen at a server, at a proxy, in the ledger, never only meant."""
    entries: int = 0
    audits: int = 0
    violation_count: int = 0
    violations: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    """What a scenario has measured, a line each."""
    skipped: list[str] = field(default_factory=list)
    """What could not be done here, and why."""
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.name} {self.seed}")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def was_skipped(self) -> bool:
        """Return whether nothing at all was done."""
        return bool(self.skipped) and not self.entries

    @property
    def missing(self) -> list[str]:
        """Return the kinds of faults that were promised and never came: a run without them proves nothing."""
        return [] if self.was_skipped else [kind for kind in sorted(self.promised) if not self.faults[kind]]

    @property
    def failed(self) -> bool:
        """Return whether anything was violated, or was to be proved and was not."""
        return bool(self.violation_count or self.missing)

    @contextmanager
    def world(self, **options: Any) -> Iterator[World]:
        """Yield a world (`make_world` names the options); what its auditor saw is added to the run."""
        if find_versitygw() is None and WITHOUT_VERSITYGW not in self.skipped:
            self.skipped.append(WITHOUT_VERSITYGW)
        with make_world(self.random.randrange(2**32), **options) as world:
            try:
                yield world
            finally:
                world.auditor.end()
                self.entries += world.entries
                self.audits += world.auditor.audits
                self.violation_count += world.auditor.count
                self.violations += world.auditor.violations

    def as_row(self, what: str) -> str:
        """Return the run's line of the table in docs/internals/torture.md."""
        faults = [f"{count:,} {kind}" for kind, count in sorted(self.faults.items()) if count]
        numbers = (f"{number:,}" for number in (self.entries, self.audits, self.violation_count, round(self.seconds)))
        return f"| {' | '.join([self.name, what, ', '.join(faults), *numbers, str(self.seed)])} |"
