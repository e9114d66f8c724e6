"""The batches of a simulated worker: claimed as their entries run out, looked at before they end, as real ones are."""

from dataclasses import dataclass, field

CLAIM_SECONDS = 0.03
SLOTS = 16


@dataclass(slots=True)
class Batch:
    """What is left of a claimed batch."""

    to_start: int
    left: int
    """Objects whose copies have not ended; then those whose looks have not."""
    is_looked_at: bool = False


@dataclass(slots=True)
class Batches:
    """The claimed batches of one worker; each has `size` objects; 0: there is one, without an end."""

    size: int
    is_claiming: bool = False
    _claimed: list[Batch] = field(default_factory=list[Batch])

    def __post_init__(self) -> None:
        if not self.size:
            self._claimed.append(Batch(10**9, 10**9))

    def wants_batch(self, limit: int) -> bool:
        """Return whether another batch is to be claimed: less is left to copy than twice the limit."""
        left = sum(batch.left for batch in self._claimed if not batch.is_looked_at)
        return not self.is_claiming and len(self._claimed) < SLOTS and left < 2 * limit

    def claim(self) -> None:
        """Add a batch."""
        self.is_claiming = False
        self._claimed.append(Batch(self.size, self.size))

    def find_unstarted(self) -> list[Batch]:
        """Return the batches with objects that are to be copied or looked at: looks come first."""
        return sorted((batch for batch in self._claimed if batch.to_start), key=lambda one: not one.is_looked_at)

    def end_object(self, batch: Batch) -> None:
        """Note the end of a copy, or of a look."""
        batch.left -= 1
        if batch.left:
            return
        if batch.is_looked_at:
            self._claimed.remove(batch)
        else:
            batch.is_looked_at, batch.to_start, batch.left = True, self.size, self.size
