"""Which queues there are here: those of rowferry itself, and those of installed packages."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from rowferry.errors import UsageError
from rowferry.queue_spec import QueueSpec

GROUP = "rowferry.queues"
"""The group of entry points."""


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def list_queues() -> list[str]:
    """Return the names of all queues that are installed here."""
    return sorted(_entry_points())


@cache
def find_queue(name: str) -> QueueSpec:
    """Return the queue of that name. Raises UsageError when there is none, or its package is faulty."""
    point = _entry_points().get(name)
    if point is None:
        known = ", ".join(list_queues())
        raise UsageError(f"There is no queue {name!r} here, only {known}: install the package that has it.")
    try:
        spec = point.load()
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise UsageError(f"The queue {name} of {point.value} cannot be loaded ({words}): mend that package.") from error
    if not isinstance(spec, QueueSpec) or spec.name != name:
        raise UsageError(f"{point.value} is no QueueSpec of the name {name}: mend the entry point of that package.")
    return spec


def forget_queues() -> None:
    """Look for queues anew: a package was installed."""
    _entry_points.cache_clear()
    find_queue.cache_clear()
