"""Where in a value texts stand: the whole of it, or places in a document or array. Pure."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

Placed = tuple[int, str]
"""A text, after the number of the row that holds it."""
Texts = Mapping[str | None, list[Placed]]
"""The texts of one column by their path in the notation of a plan's `path`; None: the whole value."""

MAX_TEXTS = 400
"""Of one document."""
MANY_NAMES = 12
"""So many names in one place are data, not structure: `.*` stands for them."""

_PLAIN = re.compile(r"[^\W\d][\w-]*")
Step = tuple[str, ...]


def split_places(values: Iterable[str], kind: str) -> Texts:
    """Return the texts of some values by their places; the values of an array or a document are JSON."""
    found: dict[Step | None, list[Placed]] = defaultdict(list)
    for row, value in enumerate(values):
        document = _parse(value, kind)
        if document is None:
            if kind == "text":
                found[None].append((row, value))
            continue
        for number, (steps, text) in enumerate(_walk(document, ())):
            if number >= MAX_TEXTS:
                break
            found[steps].append((row, text))
    merged: dict[Step | None, list[Placed]] = defaultdict(list)
    names = _wide_places([steps for steps in found if steps is not None])
    for steps, texts in found.items():
        merged[steps if steps is None else _widen(steps, names)] += texts
    return {None if steps is None else "$" + "".join(steps): texts for steps, texts in merged.items()}


def _parse(value: str, kind: str) -> Any:
    """Return the document that a value is, also one that is a text alone, as in a table of settings; None: no JSON."""
    if kind == "text" and not value.startswith(("{", "[")):
        return None
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return None
    is_document = isinstance(document, dict | list) or (kind == "json" and isinstance(document, str))
    return cast("Any", document) if is_document else None


def _walk(node: Any, steps: Step) -> Iterator[tuple[Step, str]]:
    """Yield the texts of a document with the steps that lead to each."""
    if isinstance(node, str):
        if node:
            yield steps, node
    elif isinstance(node, dict) and len(steps) < 8:
        for name, below in cast("dict[str, Any]", node).items():
            step = f".{name}" if _PLAIN.fullmatch(name) else f".{json.dumps(name, ensure_ascii=False)}"
            yield from _walk(below, (*steps, step))
    elif isinstance(node, list) and len(steps) < 8:
        for below in cast("list[Any]", node):
            yield from _walk(below, (*steps, "[*]"))


def _wide_places(found: Sequence[Step]) -> set[Step]:
    """Return the places below which there are too many names to be structure."""
    names: dict[Step, set[str]] = defaultdict(set)
    for steps in found:
        for position, step in enumerate(steps):
            names[steps[:position]].add(step)
    return {place for place, below in names.items() if len(below) > MANY_NAMES}


def _widen(steps: Step, wide: set[Step]) -> Step:
    return tuple(".*" if steps[:position] in wide and step[0] == "." else step for position, step in enumerate(steps))


def merge_paths(found: Sequence[str], all_paths: Sequence[str]) -> list[str]:
    """Return paths that lead to the same places with `.*` where they differ in one name, if that leads to no other."""
    merged = list(found)
    for one in found:
        for two in found:
            pattern = _generalise(_split(one), _split(two))
            if pattern is None:
                continue
            reached = [path for path in all_paths if _matches(_split(path), pattern)]
            if set(reached) <= set(found):
                wide = "$" + "".join(pattern)
                merged = [wide if path in reached else path for path in merged]
    return list(dict.fromkeys(merged))


def is_below(path: str, pattern: str) -> bool:
    """Return whether a path is one of those that a path with `.*` leads to."""
    return _matches(_split(path), _split(pattern))


def _split(path: str) -> Step:
    return tuple(re.findall(r'\."(?:[^"\\]|\\.)*"|\.\*|\.[^.\[]+|\[\*\]', path))


def _generalise(one: Step, two: Step) -> Step | None:
    """Return the steps with `.*` where the two differ; None unless they differ in one name that is not the last."""
    if len(one) != len(two):
        return None
    different = [position for position, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    if len(different) != 1 or different[0] == len(one) - 1:
        return None
    return (*one[: different[0]], ".*", *one[different[0] + 1 :])


def _matches(steps: Step, pattern: Step) -> bool:
    return len(steps) == len(pattern) and all(
        wanted in {step, ".*"} for step, wanted in zip(steps, pattern, strict=True)
    )
