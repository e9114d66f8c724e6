"""What is planted before a migration and looked at after it; each look returns the server's own limits, or is Wrong."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from botocore.exceptions import ClientError

from conformance.conflicts import look_existing, plant_existing
from conformance.environment import IN_PARTS_BYTES, MIB, Environment
from conformance.keys import describe_kinds, list_keys
from conformance.properties import PROPERTIES, TAGS, compare_properties
from support.entries.entry_table import TO

LARGE_BYTES = 60 * MIB
SMALL = 100

Plant = Callable[[Environment], None]
Look = Callable[[Environment], Iterator[str] | None]


@dataclass(frozen=True, slots=True)
class Check:
    """`early`: planted before the worker can know what the production server honours."""

    name: str
    plant: Plant
    look: Look
    early: bool = False


def look_moved(setup: Environment, check: str) -> None:
    """Hold each object that the check has planted."""
    for row_id, name in setup.planted[check].items():
        setup.hold_moved(row_id, name)


# Small objects, many of them


def plant_small(setup: Environment) -> None:
    for number in range(SMALL):
        setup.plant("small objects", f"u{number}/me.png", f"body of {number}".encode())


# Texts, which proxies and servers may compress on the way

TEXT = b"<p>A page that compresses well.</p>\n"
TEXTS = (("page.html", "text/html", 100), ("long.html", "text/html", 10_000), ("data.xml", "application/xml", 100))


def plant_texts(setup: Environment) -> None:
    for name, content_type, lines in TEXTS:
        setup.plant("texts", name, TEXT * lines, ContentType=content_type)


# Strange keys


def plant_keys(setup: Environment) -> None:
    kept = setup.legacy.kept_keys & setup.production.kept_keys
    if setup.direction == "within":
        kept &= setup.facts.copied_keys
    for key in list_keys():
        if key in kept:
            setup.plant("strange keys", key, f"the bytes of {key!r}".encode())


def look_keys(setup: Environment) -> Iterator[str]:
    for row_id, name in setup.planted.get("strange keys", {}).items():
        setup.hold_moved(row_id, name)
    if lost := {*list_keys()} - setup.facts.kept_keys:
        yield f"refuses or renames {len(lost)} of {len(list_keys())} keys: {describe_kinds(lost)}"
    if setup.direction == "within" and (refused := setup.facts.kept_keys - setup.facts.copied_keys):
        yield f"CopyObject refuses {describe_kinds(refused)}"


# Metadata, content headers, tags


def plant_properties(setup: Environment) -> None:
    sides = (setup.legacy.properties, setup.production.properties)
    properties = next((each for each in sides if each != PROPERTIES), PROPERTIES)
    for name, size_bytes in (("described", 100), ("described-in-parts", IN_PARTS_BYTES)):
        setup.plant("properties", name, os.urandom(size_bytes), **properties)


def look_properties(setup: Environment) -> Iterator[str]:
    """Hold each object against the legacy one: what it lacks must be what plain requests lose there as well."""
    for row_id, name in setup.planted["properties"].items():
        in_parts = name.endswith("parts")
        if not setup.can_write(in_parts=in_parts):
            continue
        setup.hold_moved(row_id, name)
        way = setup.way(in_parts=in_parts)
        lost = set(compare_properties(setup.migration.production.head(TO + name)))
        by_itself = {*setup.production.dropped[way], *setup.legacy.dropped["PutObject"]}
        setup.hold(lost <= by_itself, f"{name} has lost {sorted(lost - by_itself)}, which {way} keeps")
        for facts, operation in ((setup.production, way), (setup.legacy, "PutObject")):
            if facts is setup.facts and facts.properties != PROPERTIES:
                yield "refuses writes with metadata whose names have an underscore"
            elif facts is setup.facts and facts.dropped[operation]:
                yield f"{operation} drops {', '.join(facts.dropped[operation])}"


def plant_tags(setup: Environment) -> None:
    if setup.legacy.has_tags:
        for name, size_bytes in (("tagged", 100), ("tagged-in-parts", IN_PARTS_BYTES)):
            setup.plant("tags", name, os.urandom(size_bytes))
            setup.migration.legacy.tag(f"image/{name}", TAGS)


def look_tags(setup: Environment) -> Iterator[str]:
    """Hold the tags against the legacy ones; where there are none in production, the entry must have failed."""
    if not setup.facts.has_tags:
        yield "has no tags"
    for row_id, name in setup.planted.get("tags", {}).items():
        if not setup.can_write(in_parts=name.endswith("parts")):
            continue
        if setup.production.has_tags:
            setup.hold_moved(row_id, name)
            found = setup.migration.production.tags(TO + name)
            setup.hold(found == TAGS, f"{name} has the tags {found}")
        else:
            moved = setup.migration.rows()[row_id] == TO + name
            setup.hold(not moved, f"{name} was moved to a server without tags, without a warning")


# 60 MiB


def plant_large(setup: Environment) -> None:
    setup.plant("60 MiB by parts", "large", os.urandom(LARGE_BYTES))


def look_large(setup: Environment) -> Iterator[str]:
    ((row_id, name),) = setup.planted["60 MiB by parts"].items()
    if not setup.can_write(in_parts=True):
        stays = setup.migration.rows()[row_id] == f"image/{name}"
        setup.hold(stays and setup.migration.production.read(TO + name) is None, f"{name} is half moved")
        yield "has no UploadPartCopy: the entry fails, its row stays"
        return
    setup.hold_moved(row_id, name)
    with suppress(ClientError):  # where it lists no uploads, as `resume` says
        setup.hold(setup.count_parts(TO + name) is None, "an upload is left open")


# An object that is not there


def plant_missing(setup: Environment) -> None:
    setup.plant("missing objects", "lost.png", None)


def look_missing(setup: Environment) -> None:
    ((row_id, name),) = setup.planted["missing objects"].items()
    setup.hold(setup.migration.rows()[row_id] == f"image/{name}", "the row points at nothing")
    outcome, reason, _ = setup.migration.failure_of(row_id)
    setup.hold(outcome == "missing", f"told as {outcome}, {reason}")


CHECKS = (
    Check("small objects", plant_small, partial(look_moved, check="small objects"), early=True),
    Check("texts", plant_texts, partial(look_moved, check="texts")),
    Check("strange keys", plant_keys, look_keys),
    Check("properties", plant_properties, look_properties),
    Check("tags", plant_tags, look_tags),
    Check(
        "conflicts",
        partial(plant_existing, check="conflicts", size_bytes=100, different=5),
        partial(look_existing, check="conflicts", in_parts=False),
    ),
    Check(
        "conflicts by parts",
        partial(plant_existing, check="conflicts by parts", size_bytes=IN_PARTS_BYTES, different=3),
        partial(look_existing, check="conflicts by parts", in_parts=True),
    ),
    Check("60 MiB by parts", plant_large, look_large),
    Check("missing objects", plant_missing, look_missing),
)
