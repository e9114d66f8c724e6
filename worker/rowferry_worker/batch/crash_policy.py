"""Policy for batches that have crashed workers or lost connections: bisection isolates the poisonous entry. Pure."""

from datetime import timedelta
from enum import Enum

from rowferry.batch import Attempt, Batch

SLOW_PARALLEL = 16
"""Objects in flight for a batch with a strike, which runs alone in its process: memory may have been the reason."""
FREE_LOSSES = 2
"""Connection losses that do not count as strikes: an outage hits many batches once or twice, a poison batch is hit
again and again."""
FREE_LOSSES_OF_A_SUSPECT = 1
"""The same for a batch that was split from one that had crashes."""
LOSS_WAIT = timedelta(seconds=5)
"""How long a batch waits after the last free loss; twice as long after each further one."""
LONGEST_LOSS_WAIT = timedelta(minutes=5)


class CrashPolicy(Enum):
    """What to do with a claimed batch."""

    RUN = "run"
    RUN_SLOWLY = "run with few objects in flight"
    BISECT = "put each half back as a batch of its own"
    FAIL = "make it ERROR without running it"


def choose_policy(batch: Batch, attempt: Attempt) -> CrashPolicy:
    """Return what to do with a batch, by its strikes and those of the batches it was split from.

    The first strike may have been the host's: the batch runs once more, slowly. After that it is bisected, and its
    halves at their first strike, until the poisonous entry is alone. Alone, it fails after `max_attempts` strikes,
    its ancestors' included, of which at least one must be its own: the innocent half of a poison batch gets its turn.
    A batch that failed by its own errors as often as allowed fails as well.
    """
    own = count_strikes(batch, attempt)
    strikes = batch.crashes + own
    if own and batch.entry_count > 1 and strikes > 1:
        return CrashPolicy.BISECT
    if (own and strikes >= batch.max_attempts) or attempt.number > batch.max_attempts:
        return CrashPolicy.FAIL
    return CrashPolicy.RUN_SLOWLY if strikes else CrashPolicy.RUN


def count_strikes(batch: Batch, attempt: Attempt) -> int:
    """Return how often the batch itself has killed its worker, or lost its connection beyond the free losses."""
    return attempt.crashes + max(0, attempt.losses - _free_losses(batch))


def choose_wait(batch: Batch, attempt: Attempt) -> timedelta:
    """Return how long a claimed batch must wait before it runs; zero: it may run now.

    It waits after each loss beyond the free ones, and while it is unclear whether its previous worker is dead.
    """
    waits = [timedelta(0), attempt.unclear_for or timedelta(0)]
    beyond = attempt.losses - _free_losses(batch)
    if beyond >= 0 and attempt.since_loss is not None:
        waits.append(min(LOSS_WAIT * 2 ** min(beyond, 10), LONGEST_LOSS_WAIT) - attempt.since_loss)
    return max(waits)


def describe_wait(attempt: Attempt) -> str:
    """Return why a batch must wait, for the log."""
    if attempt.unclear_for:
        return "its previous worker has fallen silent; the batch waits until that worker responds or counts as dead"
    return f"the connection was lost {attempt.losses} times while it held this batch; it waits before it is run again"


def _free_losses(batch: Batch) -> int:
    return FREE_LOSSES_OF_A_SUSPECT if batch.crashes else FREE_LOSSES


def describe_crashes(batch: Batch, attempt: Attempt) -> str:
    """Return how often workers died or lost their connection with this batch or those it was split from."""
    deaths, losses = attempt.crashes, attempt.losses
    counted = losses > _free_losses(batch)
    parts = [f"the worker died {batch.crashes + deaths} times"] if deaths or (batch.crashes and not counted) else []
    parts += [f"the connection was lost {losses} times"] if counted else []
    if not parts:
        return f"it was tried {attempt.number - 1} times and never came to its end"
    return f"{' and '.join(parts)} while it held this batch"
