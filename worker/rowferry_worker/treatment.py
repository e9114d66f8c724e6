"""How a batch with crashes in its history is treated, so that one poisonous entry ends up alone. Pure."""

from enum import Enum

from rowferry.batch import Attempt, Batch

GENTLE_FLIGHT = 4
"""Objects in flight for a batch that has killed a worker: memory may have been the reason."""


class Treatment(Enum):
    """What to do with a claimed batch."""

    RUN = "run"
    RUN_GENTLY = "run with few objects in flight"
    HALVE = "put each half back as a batch of its own"
    GIVE_UP = "make it ERROR without running it"


def choose_treatment(batch: Batch, attempt: Attempt) -> Treatment:
    """Return how to treat a batch, by its crashes and those of the batches it was split from.

    The first crash may have been the host's: the batch is run once more, gently. After that it is halved, and its
    halves at their first crash, until the poison is alone; alone, it has `max_attempts` crashes, its ancestors'
    included, of which one at least must be its own: the innocent half of a poisoned batch has its turn.
    A batch that failed by its own errors as often as it may is given up as well.
    """
    crashes = batch.crashes + attempt.crashes
    if attempt.crashes and batch.entry_count > 1 and crashes > 1:
        return Treatment.HALVE
    if (attempt.crashes and crashes >= batch.max_attempts) or attempt.number > batch.max_attempts:
        return Treatment.GIVE_UP
    return Treatment.RUN_GENTLY if crashes else Treatment.RUN
