"""Journeys over shelves: how a worker travels that believes this or that of its servers."""

from typing import Any

from rowferry.plan import OnConflict
from rowferry_worker.objects.conditional_writes import Belief, Condition
from rowferry_worker.objects.copy import Way, copy_object
from rowferry_worker.objects.journey import Copied
from rowferry_worker.objects.tags import Tagging
from rowferry_worker.objects.transfer import Carrier
from shelves import Shelves, Stored

OLD, NEW = "image/a.png", "avatar/a.png"


def way_of(carrier: Carrier, belief: Belief = "ignored", on_conflict: OnConflict = "fail") -> Way:
    """Return a way on which the worker believes this of the production server's ordinary writes, and knows of tags."""
    condition = Condition("new")
    condition._beliefs[carrier.operation] = belief
    tagging = Tagging()
    tagging._announced = "yes"
    tagging._kept |= {"PutObject": True, "CopyObject": True}
    return Way(carrier, condition, on_conflict, tagging)


def shelves_with(body: bytes = b"legacy", standing: bytes | None = None, **more: Any) -> Shelves:
    shelves = Shelves(legacy={OLD: Stored(body)}, **more)
    if standing is not None:
        shelves.production[NEW] = Stored(standing)
    return shelves


def move(shelves: Shelves, way: Way) -> Copied:
    return shelves.travel(copy_object(way, OLD, NEW))
