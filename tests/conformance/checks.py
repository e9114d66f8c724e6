"""What is planted before a migration and looked at after it; each look returns the server's own limits, or is Wrong."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conformance.keys import describe_kinds, list_keys
from conformance.properties import PROPERTIES, TAGS, compare_properties
from conformance.stage import MIB, PART_BYTES, Stage
from entry_table import TO
from objects import digest

LARGE_BYTES = 60 * MIB
IN_PARTS_BYTES = PART_BYTES + MIB
"""The size of an object that travels by parts, with little trouble."""
SMALL = 100

Plant = Callable[[Stage], None]
Look = Callable[[Stage], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Check:
    """`early`: planted before the worker can know what the production server honours."""

    name: str
    plant: Plant
    look: Look
    early: bool = False


# Small objects, many of them


def plant_small(stage: Stage) -> None:
    for number in range(SMALL):
        stage.plant("small objects", f"u{number}/me.png", f"body of {number}".encode())


def look_small(stage: Stage) -> Iterator[str]:
    for row_id, name in stage.planted["small objects"].items():
        stage.hold_moved(row_id, name)
    yield from ()


# Strange keys


def plant_keys(stage: Stage) -> None:
    kept = stage.legacy.kept_keys & stage.production.kept_keys
    if stage.direction == "within":
        kept &= stage.facts.copied_keys
    for key in list_keys():
        if key in kept:
            stage.plant("strange keys", key, f"the bytes of {key!r}".encode())


def look_keys(stage: Stage) -> Iterator[str]:
    for row_id, name in stage.planted["strange keys"].items():
        stage.hold_moved(row_id, name)
    if lost := {*list_keys()} - stage.facts.kept_keys:
        yield f"refuses or renames {len(lost)} of {len(list_keys())} keys: {describe_kinds(lost)}"
    if stage.direction == "within" and (refused := stage.facts.kept_keys - stage.facts.copied_keys):
        yield f"CopyObject refuses {describe_kinds(refused)}"


# Metadata, content headers, tags


def plant_properties(stage: Stage) -> None:
    for name, size_bytes in (("described", 100), ("described-in-parts", IN_PARTS_BYTES)):
        stage.plant("properties", name, os.urandom(size_bytes), **PROPERTIES)


def look_properties(stage: Stage) -> Iterator[str]:
    """Hold each object against the legacy one: what it lacks must be what plain requests lose there as well."""
    for row_id, name in stage.planted["properties"].items():
        in_parts = name.endswith("parts")
        if not stage.can_write(in_parts=in_parts):
            continue
        stage.hold_moved(row_id, name)
        way = stage.way(in_parts=in_parts)
        lost = set(compare_properties(stage.migration.production.head(TO + name)))
        by_itself = {*stage.production.dropped[way], *stage.legacy.dropped["PutObject"]}
        stage.hold(lost <= by_itself, f"{name} has lost {sorted(lost - by_itself)}, which {way} keeps")
        for facts, operation in ((stage.production, way), (stage.legacy, "PutObject")):
            if facts is stage.facts and facts.dropped[operation]:
                yield f"{operation} drops {', '.join(facts.dropped[operation])}"


def plant_tags(stage: Stage) -> None:
    if stage.legacy.has_tags:
        for name, size_bytes in (("tagged", 100), ("tagged-in-parts", IN_PARTS_BYTES)):
            stage.plant("tags", name, os.urandom(size_bytes))
            stage.migration.legacy.tag(f"image/{name}", TAGS)


def look_tags(stage: Stage) -> Iterator[str]:
    """Hold the tags against the legacy ones; where there are none in production, the entry must have failed."""
    if not stage.facts.has_tags:
        yield "has no tags"
    for row_id, name in stage.planted.get("tags", {}).items():
        if not stage.can_write(in_parts=name.endswith("parts")):
            continue
        if stage.production.has_tags:
            stage.hold_moved(row_id, name)
            found = stage.migration.production.tags(TO + name)
            stage.hold(found == TAGS, f"{name} has the tags {found}")
        else:
            moved = stage.migration.rows()[row_id] == TO + name
            stage.hold(not moved, f"{name} was moved to a server without tags, and nobody was told")


# Conflicts


def plant_conflicts(stage: Stage) -> None:
    plant_standing(stage, "conflicts", 100, different=5)


def plant_large_conflicts(stage: Stage) -> None:
    plant_standing(stage, "conflicts by parts", IN_PARTS_BYTES, different=3)


def plant_standing(stage: Stage, check: str, size_bytes: int, *, different: int) -> None:
    """Plant objects whose production keys are taken: by different objects as large, and by one that is equal."""
    for number in range(different):
        name = f"{check}/{number}"
        stage.plant(check, name, os.urandom(size_bytes))
        stage.migration.production.put(TO + name, os.urandom(size_bytes))
    body = os.urandom(size_bytes)
    stage.plant(check, f"{check}/equal", body)
    stage.migration.production.put(f"{TO}{check}/equal", body)
    stage.standing |= {
        name: digest(stage.migration.production.read(TO + name)) for name in stage.planted[check].values()
    }


def look_conflicts(stage: Stage) -> Iterator[str]:
    yield from look_standing(stage, "conflicts", in_parts=False)


def look_large_conflicts(stage: Stage) -> Iterator[str]:
    yield from look_standing(stage, "conflicts by parts", in_parts=True)


def look_standing(stage: Stage, check: str, *, in_parts: bool) -> Iterator[str]:
    names = stage.planted[check]
    changed = [n for n in names.values() if digest(stage.migration.production.read(TO + n)) != stage.standing[n]]
    stage.hold(not changed, f"{len(changed)} of {len(names) - 1} different objects overwritten: {changed}")
    rows, failures = stage.migration.rows(), {each["entry_id"]: each for each in stage.migration.failures()}
    for row_id, name in names.items():
        if name.endswith("equal"):
            stage.hold_moved(row_id, name)
            continue
        stage.hold(rows[row_id] == f"image/{name}", f"the row of {name} moved on to the different object")
        if stage.can_write(in_parts=in_parts):
            told = failures.get(row_id, {}).get("outcome")
            stage.hold(told == "conflict", f"{name} is told as {told}: {stage.explain(row_id)}")
    yield from ()


# 60 MiB


def plant_large(stage: Stage) -> None:
    stage.plant("60 MiB by parts", "large", os.urandom(LARGE_BYTES))


def look_large(stage: Stage) -> Iterator[str]:
    ((row_id, name),) = stage.planted["60 MiB by parts"].items()
    if not stage.can_write(in_parts=True):
        stays = stage.migration.rows()[row_id] == f"image/{name}"
        stage.hold(stays and stage.migration.production.read(TO + name) is None, f"{name} is half moved")
        yield "has no UploadPartCopy: the entry fails, its row stays"
        return
    stage.hold_moved(row_id, name)
    stage.hold("image/large" not in stage.migration.production.open_uploads(), "an upload is left open")


# An object that is not there


def plant_missing(stage: Stage) -> None:
    stage.plant_row("missing objects", "lost.png")


def look_missing(stage: Stage) -> Iterator[str]:
    ((row_id, name),) = stage.planted["missing objects"].items()
    stage.hold(stage.migration.rows()[row_id] == f"image/{name}", "the row points at nothing")
    outcome, reason, _ = stage.migration.failure_of(row_id)
    stage.hold(outcome == "missing", f"told as {outcome}, {reason}")
    yield from ()


CHECKS = (
    Check("small objects", plant_small, look_small, early=True),
    Check("strange keys", plant_keys, look_keys),
    Check("properties", plant_properties, look_properties),
    Check("tags", plant_tags, look_tags),
    Check("conflicts", plant_conflicts, look_conflicts),
    Check("conflicts by parts", plant_large_conflicts, look_large_conflicts),
    Check("60 MiB by parts", plant_large, look_large),
    Check("missing objects", plant_missing, look_missing),
)
