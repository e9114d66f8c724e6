"""The queues: one module a queue, named after it; its `perform` is what a batch of that queue does.

To add a queue, add a file here with two functions:

`read(context: BatchContext) -> list[Entry]` returns the entries of `context.batch.payload` that still need work, in
the order of their ids.

`perform(context: BatchContext) -> list[EntryResult]` does the work inside the transaction of `context.connection`, and
returns one result for each entry, except for those it leaves to `context.leave_unstarted` when the time budget is
exceeded. Neither function commits or writes a verdict: `batch/run.py` does.

A queue that never writes objects has `WRITES_OBJECTS = False`, one that never updates rows `UPDATES_ROWS = False`.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from rowferry.errors import UsageError
from rowferry_worker.batch.context import Queue


@cache
def list_queues() -> list[str]:
    """Return the names of the queues that this worker can serve."""
    return sorted(module.name for module in iter_modules(__path__))


@cache
def find_queue(name: str) -> Queue:
    """Return the queue of that name. Raises UsageError when there is none."""
    if name not in list_queues():
        raise UsageError(f"There is no queue {name!r} here; this worker knows {', '.join(list_queues())}.")
    module = import_module(f"{__name__}.{name}")
    does = [getattr(module, name, True) for name in ("WRITES_OBJECTS", "UPDATES_ROWS")]
    return Queue(module.read, module.perform, *does)
