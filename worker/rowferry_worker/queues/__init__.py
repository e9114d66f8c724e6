"""The queues: one module a queue, named after it; its `perform` is what a batch of that queue does.

To add a queue, add a file here with a function `perform(work: Work) -> list[EntryResult]`. It reads the entries that
`work.batch.payload` speaks of, does what the queue is for inside the transaction of `work.connection`, and returns
one result for each entry it read. It commits nothing and writes no verdict: `process` does.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from rowferry.batch import EntryResult
from rowferry.errors import UserMistake
from rowferry_worker.work import Work

Perform = Callable[[Work], list[EntryResult]]


def list_queues() -> list[str]:
    """Return the names of the queues that this worker can serve."""
    return sorted(module.name for module in iter_modules(__path__))


def find_queue(name: str) -> Perform:
    """Return what a batch of the queue does. Raises UserMistake when there is no such queue."""
    if name not in list_queues():
        raise UserMistake(f"There is no queue {name!r} here; this worker knows {', '.join(list_queues())}.")
    return import_module(f"{__name__}.{name}").perform
