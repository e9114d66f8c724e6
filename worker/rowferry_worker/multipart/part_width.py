"""How many parts travel side by side: as many as make them faster."""

FIRST = 16
"""Parts of an object that begins; a fast link is full with these."""
MOST = 64
GROWTH = 2.0
GAIN = 1.15
"""A round of more parts that is not this much faster did not pay."""
PROBE_EVERY = 6
"""Rounds at one width before it is tried again whether more pay: the link may have become free."""


class PartWidth:
    """Doubles the parts under way while a round of them is faster than the best before; times are seconds.

    A round ends when as many parts are sent that were begun in it as travel at once. Of parts that are under way when
    it begins or ends, it counts what passes in it, as if each part passed evenly: parts end together, or one after the
    other, and the rate must not depend on that.
    """

    def __init__(self, now: float, first: int = FIRST, most: int = MOST) -> None:
        """`now` is any clock's time."""
        self.value = min(first, most)
        """How many parts may be under way."""
        self.paid = self.value
        """The width that has paid last."""
        self._most = most
        self._under_way: list[float] = []
        """When each of them was begun."""
        self._best = 0.0
        self._flat_rounds = 0
        self._begin_round(now)

    def begin(self, now: float) -> float:
        """Note that a part begins, and return what `end` is to be told of it."""
        self._under_way.append(now)
        return now

    def end(self, begun: float, now: float, sent_bytes: int = 0) -> None:
        """Note that a part has ended, and how much of it was sent: all or nothing."""
        self._under_way.remove(begun)
        seconds = now - begun
        if not sent_bytes or seconds <= 0:
            return
        self._bytes += sent_bytes * (now - max(begun, self._began)) / seconds
        if begun < self._began:
            return
        self._parts, self._part_seconds = self._parts + 1, self._part_seconds + seconds
        if self._parts >= self.value and now > self._began:
            mean_seconds = self._part_seconds / self._parts
            passing = sum(min(1.0, (now - max(other, self._began)) / mean_seconds) for other in self._under_way)
            self._end_round((self._bytes + sent_bytes * passing) / (now - self._began))
            self._begin_round(now)

    def _end_round(self, bytes_per_second: float) -> None:
        if bytes_per_second >= self._best * GAIN:
            self._best, self.paid, self._flat_rounds = bytes_per_second, self.value, 0
            self.value = min(self._most, int(self.value * GROWTH))
            return
        self._flat_rounds += 1
        if self.value > self.paid:
            self.value = self.paid
        elif self._flat_rounds >= PROBE_EVERY:
            self._best, self._flat_rounds = bytes_per_second, 0
            self.value = min(self._most, int(self.value * GROWTH))

    def _begin_round(self, now: float) -> None:
        self._began, self._bytes, self._parts, self._part_seconds = now, 0.0, 0, 0.0
