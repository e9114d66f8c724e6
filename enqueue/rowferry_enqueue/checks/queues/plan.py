"""Decides from a plan alone whether its queues can work. Pure: no queries, no requests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rowferry.formatting import find_nearest
from rowferry.keys import Form
from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry.queue_spec import QueueSpec, SourceName
from rowferry.queues import find_queue
from rowferry_enqueue.checks.finding import Finding, note, problem


@dataclass(frozen=True, slots=True)
class PlannedQueue:
    """A queue, and what a plan says of it."""

    spec: QueueSpec
    settings: Any
    entries: tuple[Entries, ...]
    """The [[entries]] that it works on."""
    objects: tuple[ObjectPrefix, ...]
    """The [[objects]] that it works on; `settings.buckets` has the prefixes that it names itself."""

    @property
    def sources(self) -> frozenset[SourceName]:
        """Where the entries of its own batches are; items alone, where it takes nothing else."""
        found: set[SourceName] = set()
        if self.entries:
            found.add("table")
        if self.objects or self.settings.buckets:
            found.add("listing")
        if not found and "items" in self.spec.sources:
            found.add("items")
        return frozenset(found)

    @property
    def form(self) -> Form:
        """The form of the entries that need its work."""
        return self.spec.find_form(self.settings)

    def describe(self) -> str:
        """Return in words what it works on, and what follows."""
        named = [part.label for part in (*self.entries, *self.objects, *self.settings.buckets)]
        then = f"; then {', '.join(self.settings.then)}" if self.settings.then else ""
        return f"queue {self.spec.name}: {', '.join(named) or 'items'}{then}"


def read_queue(plan: Plan, name: str) -> PlannedQueue:
    """Return a queue of a plan. Raises UsageError where it is not known, or its settings are wrong."""
    spec = find_queue(name)
    settings = spec.read_settings(plan)
    entries = tuple(one for one in plan.entries if settings.means(one.label)) if "table" in spec.sources else ()
    objects = tuple(one for one in plan.objects if settings.means(one.label)) if "listing" in spec.sources else ()
    return PlannedQueue(spec, settings, entries, objects)


def judge_queue(plan: Plan, queue: PlannedQueue) -> Iterator[Finding]:
    """Yield what keeps a queue from its work: names of nothing, sides that are missing, nothing to work on."""
    name, known = queue.spec.name, [*plan.labels]
    buckets = {bucket.label for bucket in queue.settings.buckets}
    label: str
    for label in queue.settings.named:
        if label in buckets:
            if "listing" not in queue.spec.sources:
                yield problem(f"the queue {name} cannot list {label}", f"name [[entries]] in `of` of [queue.{name}]")
        elif label not in known:
            near = find_nearest(label, known)
            remedy = (
                f"did you mean {near}?"
                if near is not None
                else f"write one of {', '.join(known) or 's3://production/'}"
            )
            yield problem(f"`of` of [queue.{name}] names {label}, which the plan does not have", remedy)
        elif label not in [part.label for part in (*queue.entries, *queue.objects)]:
            yield problem(f"the queue {name} cannot work on {label}, which `of` names", f"correct [queue.{name}]")
    needed = queue.spec.find_sides(queue.settings) | {bucket.side for bucket in queue.settings.buckets}
    for side in sorted(needed - {side.name for side in plan.sides}):
        yield problem(f"the queue {name} needs the {side} bucket, which the plan does not have", f"add [{side}]")
    if not queue.sources:
        yield note(f"the queue {name} has nothing to work on but what other queues hand on to it")


def judge_chain(queue: PlannedQueue, planned: Mapping[str, PlannedQueue]) -> Iterator[Finding]:
    """Yield what the queues that follow one cannot take of what it settles."""
    name = queue.spec.name
    leaves = queue.spec.gives_form or queue.form
    for follower in (planned[then] for then in queue.settings.then if then in planned):
        then = follower.spec.name
        for source in sorted(queue.sources - follower.spec.sources):
            kinds = {"table": "rows", "listing": "objects of a listing", "items": "items"}
            yield problem(
                f"the queue {name} hands {kinds[source]} on to {then}, which takes none",
                f"leave {then} out of `then` of [queue.{name}], or name other things in `of`",
            )
        moving = [entries.label for entries in queue.entries if entries.rows == "move" and entries.has_two_texts]
        if moving and "table" in follower.spec.sources and follower.form != leaves:
            yield problem(
                f"the queue {then} works on {follower.form} rows, and those of {', '.join(moving)} are {leaves} once "
                f"{name} has settled them",
                f"leave {then} out of `then` of [queue.{name}]",
            )
