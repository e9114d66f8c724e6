"""Which queues there are here: those of rowferry itself, and those of installed packages."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, entry_points

from rowferry.errors import PlanError, UsageError
from rowferry.plan import Plan, QueueSettings
from rowferry.queue_spec import SOURCE_WORDS, QueueSpec, describe_fault

GROUP = "rowferry.queues"
"""The group of entry points."""


@cache
def _entry_points() -> dict[str, list[EntryPoint]]:
    """Return the entry points by name; one package may be found twice, as an editable one is."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        same = found.setdefault(point.name, [])
        if point.value not in [one.value for one in same]:
            same.append(point)
    return found


def list_queues() -> list[str]:
    """Return the names of all queues that are installed here, those of faulty packages too."""
    return sorted(_entry_points())


def name_packages(queue: str) -> str:
    """Return the distribution that a queue comes from, with its version; several, where they are at odds over it."""
    found = [point.dist for point in _entry_points().get(queue, ())]
    return " and ".join(f"{dist.name} {dist.version}" if dist else "a package without a name" for dist in found)


@cache
def find_queue(name: str) -> QueueSpec:
    """Return the queue of that name. Raises UsageError when there is none, or its package is faulty."""
    points = _entry_points().get(name, [])
    if not points:
        near = get_close_matches(name, list_queues(), n=1)
        known = f" (did you mean {near[0]}?)" if near else f", only {', '.join(list_queues())}"
        raise UsageError(f"There is no queue {name!r} here{known}: correct the name, or install its package.")
    if len(points) > 1:
        raise UsageError(f"The queue {name} is in {name_packages(name)}: uninstall one of them, or rename its queue.")
    (point,) = points
    try:
        spec = point.load()
    except (Exception, SystemExit) as error:
        words = describe_fault(error)
        raise UsageError(f"The queue {name} of {point.value} cannot be loaded ({words}): fix that package.") from error
    if not isinstance(spec, QueueSpec) or spec.name != name:
        raise UsageError(f"{point.value} is not a QueueSpec named {name}: fix the entry point of that package.")
    return spec


def read_settings(plan: Plan) -> dict[str, QueueSettings]:
    """Return each [queue.NAME] of a plan. Raises UsageError for one that is not known here, or is wrong.

    No queue may lead back to itself by `then`.
    """
    settings = {name: find_queue(name).read_settings(plan) for name in plan.queue}
    for name, queue in settings.items():
        for following in queue.then:
            find_queue(following).read_settings(plan)
            _refuse_strange_source(find_queue(name), find_queue(following))
        for label in queue.named:
            if label not in (*plan.labels, *(bucket.label for bucket in queue.buckets)):
                known = ", ".join(plan.labels) or "none"
                raise PlanError(f"`of` of [queue.{name}] names {label}, but the plan has {known}: correct it.")
        if queue.buckets and "listing" not in find_queue(name).sources:
            raise PlanError(f"The queue {name} works on rows alone: name [[entries]] in `of` of [queue.{name}].")
    if circle := find_circle({name: queue.then for name, queue in settings.items()}):
        raise PlanError(f"The queues of the plan lead back to themselves by `then`, {circle}: leave one out.")
    return settings


def find_circle(followers: Mapping[str, Sequence[str]]) -> str | None:
    """Return the queues that lead back to themselves, in order and in words; None where none do.

    `followers`: what the batches of each queue are handed on to.
    """
    try:
        TopologicalSorter(followers).prepare()
    except CycleError as error:
        return " to ".join(reversed(error.args[1]))
    return None


def _refuse_strange_source(queue: QueueSpec, following: QueueSpec) -> None:
    """Raise PlanError where a queue works on nothing that another one could hand on to it."""
    if not queue.sources & following.sources:
        takes = " and ".join(SOURCE_WORDS[source] for source in sorted(queue.sources))
        raise PlanError(
            f"The queue {following.name} cannot follow {queue.name}, which works on {takes}: leave it out of `then` of "
            f"[queue.{queue.name}]."
        )


def list_following(queue: str, settings: Mapping[str, QueueSettings]) -> list[str]:
    """Return a queue and all that its batches are handed on to, in order."""
    found = [queue]
    for name in found:
        found += [one for one in (settings[name].then if name in settings else ()) if one not in found]
    return found


def forget_queues() -> None:
    """Look for queues anew: a package was installed."""
    _entry_points.cache_clear()
    find_queue.cache_clear()
