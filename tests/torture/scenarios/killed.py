"""Workers are killed at random moments."""

from collections.abc import Sequence
from typing import ClassVar

from torture.scenarios.scenario import Scenario, Size

LONGEST_LIFE_SECONDS = 1.2
"""Between two kills lies up to this long, over all workers."""
CUT_OFF = "select count(*)::int from rowferry.batch_attempt where verdict is null"


class Kills(Scenario):
    what = "SIGKILL at random moments, over 8 workers that are replaced at once; server-side copies, then streamed ones"
    faults = frozenset({"SIGKILL"})
    forms = ("server", "stream")
    short, long = Size(3, 200, seats=2), Size(100, 3000, seats=8)
    batch = 25
    large = None
    plan: ClassVar = {
        # A batch that was killed by chance so often is no poison.
        "migration": {"max_attempts": 50},
        # Slow enough for a kill to meet workers in the middle of a batch.
        "production": {"max_requests_per_second": 150},
    }

    def choose_forms(self) -> Sequence[str]:
        return self.run.random.sample(self.forms, 1) if self.run.short else self.forms

    def cause(self) -> None:
        """Kill so many workers, most of them in the middle of a batch."""
        for number in range(self.times):
            pid = None
            while pid is None:
                self.keep_busy(self.seats, self.entries // 6, large=1 + self.entries // 600)
                self.pause(LONGEST_LIFE_SECONDS)
                pid = self.kill_worker()
            self.say(f"{number + 1} of {self.times} killed; {self.world.waiting()} batches wait")

    def end(self) -> None:
        self.end_killed()
        self.count("batches cut off", self.world.ask(CUT_OFF))
        self.count("uploads cut off", len(self.world.migration.production.open_uploads()))
