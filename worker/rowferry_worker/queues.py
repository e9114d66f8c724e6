"""What a worker does with a batch of each queue: the `perform` that a queue's specification names.

`perform(context: BatchContext, entries: Sequence[Entry]) -> Performed` keeps these promises, and
`tests/queues/test_queue_conformance.py` holds every queue to them:

- It runs in the transaction that holds the claim, under a SAVEPOINT. It neither commits nor rolls that back, and opens
  no connection. It writes to no table of the schema rowferry, but by functions for claimed batches, as `add_parts`.
- It may be run any number of times for one batch, as after a crash: a later run ends as the first would have.
- It returns exactly one result for each entry, but for the `rest`, which it has not begun once the time budget has
  ended. An entry's failure is a result (`EntryResult.from_error`); an exception fails the whole batch.
- All S3 requests go through `context.object_requests()`. A coroutine never computes for more than a millisecond: what
  takes longer goes through `rowferry_worker.compute`.
- Rows are written in the order of their keys, so that two batches of one queue cannot deadlock.
"""

import logging
from functools import cache
from importlib import import_module
from typing import Any, cast

from rowferry import queues
from rowferry.errors import UsageError
from rowferry.queue_spec import describe_fault
from rowferry_worker.batch.context import Perform, Queue
from rowferry_worker.service import process_number

_log = logging.getLogger(__name__)


def list_usable() -> list[str]:
    """Return the names of all queues that are installed here and can be loaded; log each that cannot.

    Of several processes of one worker the first logs it.
    """
    usable: list[str] = []
    for name in queues.list_queues():
        try:
            find_queue(name)
        except UsageError as error:
            if process_number() in {"", "1"}:
                _log.error("queue left out", extra={"queue": name, "error": str(error)})
        else:
            usable.append(name)
    return usable


@cache
def find_queue(name: str) -> Queue:
    """Return the queue of that name. Raises UsageError when there is none here, or its package is faulty."""
    spec = queues.find_queue(name)
    module, _, function = spec.perform.partition(":")
    try:
        perform: Any = getattr(import_module(module), function)
    except (Exception, SystemExit) as error:
        words = describe_fault(error)
        raise UsageError(f"The work of queue {name}, {spec.perform}, cannot be loaded ({words}): fix it.") from error
    if not callable(perform):
        raise UsageError(f"The work of queue {name}, {spec.perform}, is no function: fix the specification.")
    return Queue(spec, cast("Perform", perform))
