"""Every state that can be reached, visited breadth first, in memory."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

S = TypeVar("S", bound=Hashable)
Way = tuple[str, S]
"""What may happen next, by name, and the state that it leads to."""


class Violation(AssertionError):
    """A promise that does not hold in a state that can be reached."""


def visit_all(
    start: S, find_ways: Callable[[S], Iterable[Way[S]]], check: Callable[[S, bool], None], most_states: int = 200_000
) -> int:
    """Visit every state; return how many there are. Raises Violation, with the steps that lead to it.

    `check` is told whether nothing that can still happen changes the state. It raises Violation, as `find_ways` may.
    """
    came_from: dict[S, tuple[S, str] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        try:
            ways = list(find_ways(state))
            check(state, all(following == state for _, following in ways))
        except Violation as violation:
            raise Violation(f"{violation}: {' → '.join(_trace(came_from, state))}") from None
        for name, following in ways:
            if following not in came_from:
                came_from[following] = state, name
                waiting.append(following)
        assert len(came_from) <= most_states, "the scenario is too large"
    return len(came_from)


def _trace(came_from: dict[S, tuple[S, str] | None], state: S) -> list[str]:
    steps: list[str] = []
    while (step := came_from[state]) is not None:
        state = step[0]
        steps.append(step[1])
    return steps[::-1]
