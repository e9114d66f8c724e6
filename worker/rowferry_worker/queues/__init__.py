"""The queues: one module a queue, named after it; its `perform` is what a batch of that queue does.

To add a queue, add a file here with two functions. `read(work: Work) -> list[Entry]` returns the entries that
`work.batch.payload` speaks of and that still need the work, in the order of their ids. `perform(work: Work) ->
list[EntryResult]` does what the queue is for inside the transaction of `work.connection`, and returns one result for
each of them, but for those that it leaves to `work.leave_unbegun` when the batch's time is over. Neither commits
anything or writes a verdict: `process` does.

A queue that writes no object, whatever its outcomes say, has `WRITES_OBJECTS = False`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from rowferry.batch import Entry, EntryResult
from rowferry.errors import UsageError
from rowferry_worker.batch.context import Work


@dataclass(frozen=True, slots=True)
class Queue:
    """What a batch of one queue does."""

    read: Callable[[Work], list[Entry]]
    perform: Callable[[Work], list[EntryResult]]
    writes_objects: bool
    """Whether an entry that is MIGRATED is one whose object was written."""


@cache
def list_queues() -> list[str]:
    """Return the names of the queues that this worker can serve."""
    return sorted(module.name for module in iter_modules(__path__))


def find_queue(name: str) -> Queue:
    """Return what a batch of the queue does. Raises UsageError when there is no such queue."""
    if name not in list_queues():
        raise UsageError(f"There is no queue {name!r} here; this worker knows {', '.join(list_queues())}.")
    module = import_module(f"{__name__}.{name}")
    return Queue(module.read, module.perform, getattr(module, "WRITES_OBJECTS", True))
