"""How a batch with crashes or losses in its history is treated, so that one poisonous entry ends up alone. Pure."""

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum

from rowferry.batch import Attempt, Batch, Entry
from rowferry.db.connection import Connection, call

GENTLE_FLIGHT = 4
"""Objects in flight for a batch that has killed a worker: memory may have been the reason."""
FREE_LOSSES = 2
"""Losses of its connection that a batch may have: an outage strikes many batches once or twice, a culprit strikes the
same one again and again."""
FREE_LOSSES_OF_A_SUSPECT = 1
"""The same for a batch that was split from one that had crashes."""
LOSS_WAIT = timedelta(seconds=5)
"""How long a batch waits after the last loss that is free; twice as long after each further one."""
LONGEST_LOSS_WAIT = timedelta(minutes=5)


class Treatment(Enum):
    """What to do with a claimed batch."""

    RUN = "run"
    RUN_GENTLY = "run with few objects in flight"
    HALVE = "put each half back as a batch of its own"
    GIVE_UP = "make it ERROR without running it"


def choose_treatment(batch: Batch, attempt: Attempt) -> Treatment:
    """Return how to treat a batch, by its strikes and those of the batches it was split from.

    The first strike may have been the host's: the batch is run once more, gently. After that it is halved, and its
    halves at their first strike, until the poison is alone; alone, it has `max_attempts` strikes, its ancestors'
    included, of which one at least must be its own: the innocent half of a poisoned batch has its turn.
    A batch that failed by its own errors as often as it may is given up as well.
    """
    own = count_strikes(batch, attempt)
    strikes = batch.crashes + own
    if own and batch.entry_count > 1 and strikes > 1:
        return Treatment.HALVE
    if (own and strikes >= batch.max_attempts) or attempt.number > batch.max_attempts:
        return Treatment.GIVE_UP
    return Treatment.RUN_GENTLY if strikes else Treatment.RUN


def count_strikes(batch: Batch, attempt: Attempt) -> int:
    """Return how often the batch itself has killed its worker, or lost its connection more often than it may."""
    return attempt.crashes + max(0, attempt.losses - _free_losses(batch))


def choose_wait(batch: Batch, attempt: Attempt) -> timedelta:
    """Return how long a claimed batch has to wait before it is run; zero: it may be run now.

    It waits after a loss that was one too many for chance, once for each, and while it is not clear yet whether the
    worker that had it before is dead.
    """
    waits = [timedelta(0), attempt.unclear_for or timedelta(0)]
    beyond = attempt.losses - _free_losses(batch)
    if beyond >= 0 and attempt.since_loss is not None:
        waits.append(min(LOSS_WAIT * 2 ** min(beyond, 10), LONGEST_LOSS_WAIT) - attempt.since_loss)
    return max(waits)


def describe_wait(attempt: Attempt) -> str:
    """Return why a batch waits, in words."""
    if attempt.unclear_for:
        return "the worker that had it before has fallen silent; it waits until that one answers, or counts as dead"
    return f"the connection was lost {attempt.losses} times while it held this batch; it waits before it is run again"


def _free_losses(batch: Batch) -> int:
    return FREE_LOSSES_OF_A_SUSPECT if batch.crashes else FREE_LOSSES


def describe_strikes(batch: Batch, attempt: Attempt) -> str:
    """Return what the batch has done to its workers, in words; those of the batches that it was split from included."""
    deaths, losses = attempt.crashes, attempt.losses
    counted = losses > _free_losses(batch)
    words = [f"the worker died {batch.crashes + deaths} times"] if deaths or (batch.crashes and not counted) else []
    words += [f"the connection was lost {losses} times"] if counted else []
    if not words:
        return f"it was tried {attempt.number - 1} times and never came to its end"
    return f"{' and '.join(words)} while it held this batch"


def split_in_halves(connection: Connection, batch: Batch, entries: Sequence[Entry], crashes: int) -> list[int]:
    """Put both halves of the entries back, each with `crashes` behind it, and return the new batches' ids.

    `entries` are in the order of their ids, two at least. The second half reaches to the end of the batch's range.
    """
    middle = (len(entries) + 1) // 2
    lower, upper = entries[:middle], entries[middle:]
    ranges = ((batch.payload["first"], lower[-1].id, lower), (upper[0].id, batch.payload["last"], upper))
    return [
        _split_off(connection, batch, (first, last), entry_count=len(half), crashes=crashes)
        for first, last, half in ranges
    ]


def put_rest_back(connection: Connection, batch: Batch, rest: Sequence[Entry], *, keep_last: str) -> int:
    """Put the rest of a batch back and return the new batch's id; the batch itself ends with id `keep_last` now."""
    new_range = (rest[0].id, batch.payload["last"])
    return _split_off(connection, batch, new_range, entry_count=len(rest), crashes=batch.crashes, keep_last=keep_last)


def _split_off(
    connection: Connection,
    batch: Batch,
    new_range: tuple[str, str],
    *,
    entry_count: int,
    crashes: int,
    keep_last: str | None = None,
) -> int:
    (row,) = call(connection, "split_batch", batch.id, *new_range, entry_count, crashes, keep_last)
    return row["split_batch"]
