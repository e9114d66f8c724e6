"""The lines of waiting batches that a process knows of: which of them a claim asks for first, and from where on."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate
from random import SystemRandom
from typing import Any

Line = tuple[int, str]
"""A queue of a migration: the id of that, and the name of the queue."""

KNOWN_FOR = timedelta(seconds=10)
"""How long what a look has found is enough."""
MANY_WALKED = 1000
"""A look that has walked past more batches than this, finished ones that cannot be vacuumed, is not repeated before."""
GOLDEN = 0.618033988749895
"""Multiples of it, less their integers, spread evenly however many they are (Knuth, The Art of Computer Programming,
6.4, theorem S)."""
ASKED_FIRST = 8
"""Lines that a claim asks for at once; the others where none of these has a batch to give."""

_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """One line, as `rowferry.find_oldest` returns it."""

    migration_id: int
    migration: str
    queue_name: str
    priority: int
    weight: float
    is_due: bool
    """Whether it had a due batch. Others may have handed it one since."""
    since: str
    """Where to look on: the `run_after` of a batch, and its id."""
    since_id: int


class WaitingLines:
    """What a process knows of them, for all of its slots; they claim in turns."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know nothing. Each process begins its shares elsewhere, so that not all of them begin with one line."""
        self._clock = clock
        self._turn = _random.random()
        self._lines: dict[Line, WaitingLine] = {}
        self._known_until = float("-inf")
        self._may_look_again = True

    def is_known(self) -> bool:
        """Return whether the last look is recent enough."""
        return self._clock() < self._known_until

    def may_look_again(self) -> bool:
        """Return whether a claim that has found nothing may look once more, though the last look is recent."""
        return self._may_look_again

    def note_look(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Note what a look has found; return whether a line is new, or begins elsewhere than is known of it."""
        before, walked = self._lines, rows[0]["walked"] or 0
        found = [WaitingLine(**{k: row[k] for k in WaitingLine.__slots__}) for row in rows if row["queue_name"]]
        self._lines = {(line.migration_id, line.queue_name): line for line in found}
        self._known_until = self._clock() + KNOWN_FOR.total_seconds()
        self._may_look_again = walked <= MANY_WALKED
        return any(
            line.is_due and (known is None or (known.since, known.since_id) != (line.since, line.since_id))
            for key, line in self._lines.items()
            for known in [before.get(key)]
        )

    def note_claim(self, line: Line, since: str, since_id: int) -> None:
        """Note where a batch was claimed: the next one of its line is there, or behind it."""
        self._lines[line] = replace(self._lines[line], is_due=True, since=since, since_id=since_id)

    def choose(
        self, migrations: Collection[str] | None, passed_over: Collection[int | Line]
    ) -> list[list[WaitingLine]]:
        """Return the lines to ask, in order, those to ask at once together.

        The highest priority comes first; of its lines with due batches, one by their weights: of any n choices of a
        process, each has its share to within a batch or two. Should it have none to give, the others follow in a random
        order by their weights.
        """
        lines = [
            line
            for key, line in self._lines.items()
            if (migrations is None or line.migration in migrations)
            and line.migration_id not in passed_over
            and key not in passed_over
        ]
        first = self._take_turn([line for line in lines if line.is_due])
        ordered = sorted(
            lines,
            key=lambda line: (
                -line.priority,
                line is not first,
                not line.is_due,
                _random.expovariate(line.weight),
            ),
        )
        return [part for part in (ordered[:ASKED_FIRST], ordered[ASKED_FIRST:]) if part]

    def _take_turn(self, due: list[WaitingLine]) -> WaitingLine | None:
        """Return the line of the highest priority in whose weight the turn falls, their weights laid side by side."""
        highest = max((line.priority for line in due), default=0)
        rivals = [line for line in due if line.priority == highest]
        if len(rivals) < 2:
            return rivals[0] if rivals else None
        self._turn = (self._turn + GOLDEN) % 1
        uppers = list(accumulate(line.weight for line in rivals))
        return next((line for line, upper in zip(rivals, uppers, strict=True) if upper > self._turn * uppers[-1]), None)
