"""Counts the entries of claimed batches, and says when another batch is wanted."""

from collections.abc import Callable
from threading import Event


class ClaimedEntries:
    """The entries of claimed batches whose copies have not ended. Used by slots and by the event loop."""

    def __init__(self, wanted: Callable[[], int]) -> None:
        """`wanted`: the number of entries below which another batch is wanted."""
        self._wanted = wanted
        self._left: dict[int, int] = {}
        """By batch. No entry is left of a batch whose rows are being updated."""
        self._has_room = Event()
        self._has_room.set()

    def note(self, batch_id: int, left: int) -> None:
        """Note how many entries of a batch are left to copy."""
        self._left[batch_id] = left
        self.note_change()

    def forget(self, batch_id: int) -> None:
        """Note that a batch is no longer claimed."""
        self._left.pop(batch_id, None)
        self.note_change()

    def note_change(self) -> None:
        """Wake the slot that waits for room, if there is room by now."""
        if not self._has_room.is_set() and self.wants_batch():
            self._has_room.set()

    def count(self) -> int:
        """Return the number of entries that are claimed and left to copy."""
        return sum(list(self._left.values()))

    def wants_batch(self) -> bool:
        """Return whether another batch should be claimed: fewer entries than wanted are left to copy."""
        return self.count() < max(1, self._wanted())

    def wait_for_room(self, seconds: float) -> bool:
        """Return whether another batch is wanted, as soon as it is, at the latest after so many seconds."""
        self._has_room.clear()
        if self.wants_batch():
            self._has_room.set()
            return True
        self._has_room.wait(seconds)
        return self.wants_batch()
