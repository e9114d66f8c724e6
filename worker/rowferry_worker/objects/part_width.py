"""How many parts of one object travel side by side: more while that brings more bytes a second. Pure."""

FIRST = 16
"""Parts of an object that begins: as many of 5 MiB as the memory for bodies has room for; a fast link is full with
these."""
MOST = 64
GROWTH = 2.0
GAIN = 1.15
"""A round of more parts that is not this much faster did not pay."""
PROBE_EVERY = 6
"""Rounds at one width before it is tried again whether more pay: the link may have become free."""


class PartWidth:
    """Doubles the parts under way while a round of them is faster than the best before; times are seconds."""

    def __init__(self, now: float, first: int = FIRST, most: int = MOST) -> None:
        """`now` is any clock's time."""
        self.value = min(first, most)
        """How many parts may be under way."""
        self._most = most
        self._paid = self.value
        """The width that has paid last."""
        self._best = 0.0
        self._flat_rounds = 0
        self._begin_round(now)

    def note_sent(self, size_bytes: int, started: float, now: float) -> None:
        """Note a part that was sent, and when it was started; a round ends with as many of them as travel at once."""
        if started < self._began:
            return  # it was under way with another width
        self._bytes += size_bytes
        self._parts += 1
        if self._parts >= self.value and now > self._began:
            self._end_round(self._bytes / (now - self._began))
            self._begin_round(now)

    def _end_round(self, bytes_per_second: float) -> None:
        if bytes_per_second >= self._best * GAIN:
            self._best, self._paid, self._flat_rounds = bytes_per_second, self.value, 0
            self.value = min(self._most, int(self.value * GROWTH))
            return
        self._flat_rounds += 1
        if self.value > self._paid:
            self.value = self._paid
        elif self._flat_rounds >= PROBE_EVERY:
            self._best, self._flat_rounds = bytes_per_second, 0
            self.value = min(self._most, int(self.value * GROWTH))

    def _begin_round(self, now: float) -> None:
        self._began, self._bytes, self._parts = now, 0, 0
