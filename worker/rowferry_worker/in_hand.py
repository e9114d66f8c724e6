"""How many entries of the claimed batches of a process are settled so far, before their verdicts."""


class BatchProgress:
    """Counts the objects of one batch whose work has ended well. Used by the batch's slot and by the event loop."""

    def __init__(self) -> None:
        self.entries = 0
        """Those that the attempt has read."""
        self._objects = 0
        self._ended = 0
        self._most = 0

    def expect(self, objects: int) -> None:
        """Note that so many objects are about to be worked on."""
        self._objects += objects

    def note_end(self) -> None:
        """Note that the work on one of them has ended well."""
        self._ended += 1

    def count(self) -> int:
        """Return the entries that are settled so far: never less than before, though more objects may be expected.

        Entries may have several objects, or share one: each object stands for its part of the entries.
        """
        if self._objects:
            self._most = max(self._most, self.entries * self._ended // self._objects)
        return self._most
