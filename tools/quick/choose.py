"""Which tests reach most of the product for their cost: pure."""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
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


def choose(given: Iterable[Recorded], others: Sequence[Recorded], budget_seconds: float) -> list[str]:
    """Return which of the others to run beside the given tests, the most worth a second first, within the budget.

    A worth never rises while tests are chosen, so the best is found once it is still the best after a second look.
    """
    cover, chosen, left = Cover(), list[str](), budget_seconds
    for test in given:
        cover.add(test)

    def rank(index: int) -> tuple[float, int]:
        test = others[index]
        return -cover.worth(test) / max(test.cpu_seconds, LEAST_SECONDS), index

    waiting = [rank(index) for index in range(len(others))]
    heapq.heapify(waiting)
    while waiting:
        _, index = heapq.heappop(waiting)
        if others[index].cpu_seconds > left:
            continue
        now = rank(index)
        if waiting and now > waiting[0]:
            heapq.heappush(waiting, now)
            continue
        if now[0] == 0:
            break
        chosen.append(others[index].test)
        cover.add(others[index])
        left -= others[index].cpu_seconds
    return chosen
