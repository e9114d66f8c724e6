"""Which tests reach most of the product for their cost: pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

AGAIN = 0.25
"""What it is worth to reach a branch a second time: to reach is not to notice, and another test looks elsewhere."""
SQL_WORTH, SQL_AGAIN = 10.0, 0.7
"""What the first test is worth, in branches, that names a function or view of SQL, and what part each further one."""
LEAST_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Recorded:
    """A test: what it costs, the branches that it reaches as bits, and what it names of SQL."""

    test: str
    cpu_seconds: float
    reached: int
    sql: frozenset[str]


class Cover:
    """What the chosen tests reach."""

    def __init__(self) -> None:
        self.once = self.twice = 0
        self.sql: Counter[str] = Counter()

    def worth(self, test: Recorded) -> float:
        """Return what a test would add, in branches that no chosen one reaches."""
        new = (test.reached & ~self.once).bit_count()
        again = (test.reached & self.once & ~self.twice).bit_count()
        return new + AGAIN * again + sum(SQL_WORTH * SQL_AGAIN ** self.sql[name] for name in test.sql)

    def add(self, test: Recorded) -> None:
        self.twice |= self.once & test.reached
        self.once |= test.reached
        self.sql.update(test.sql)


def choose(given: Iterable[Recorded], others: Iterable[Recorded], budget_seconds: float) -> list[str]:
    """Return which of the others to run beside the given tests, the most worth a second first, within the budget."""
    cover, chosen, waiting, left = Cover(), list[str](), list(others), budget_seconds
    for test in given:
        cover.add(test)
    while waiting := [test for test in waiting if test.cpu_seconds <= left]:
        best = max(waiting, key=lambda test: cover.worth(test) / max(test.cpu_seconds, LEAST_SECONDS))
        if cover.worth(best) == 0:
            break
        waiting.remove(best)
        chosen.append(best.test)
        cover.add(best)
        left -= best.cpu_seconds
    return chosen
