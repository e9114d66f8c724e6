"""A clock in the hands of a test."""


class Clock:
    """A clock that stands still until it is told to move; it takes the place of a module's `time`."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now
