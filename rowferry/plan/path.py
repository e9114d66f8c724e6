"""The paths of JSON documents: where in a column the keys of objects stand."""

import re
from collections.abc import Sequence

from rowferry.errors import PlanError

ANY_MEMBER, ANY_ELEMENT = "*", "[*]"

_STEP = re.compile(
    r"""
    \.(?P<name>[^\W\d][\w-]*)              # .name
    | \.(?P<wild>\*)                       # .*   every member of an object
    | (?:\.|(?P<bracket>\[))"(?P<quoted>(?:[^"\\]|\\.)*)"(?(bracket)\])  # ."any name" or ["any name"]
    | (?P<element>\[(?:\*|\d+)\])          # [*]  every element of an array; [0] the first
    """,
    re.VERBOSE,
)


def parse_path(path: str) -> tuple[str, ...]:
    """Return the steps of `$.versions.*.id`, as the SQL function rowferry.texts_at takes them.

    A step is `.name`, `*` (every member), `[0]` or `[*]` (every element). Source of the notation: SQL/JSON path, of
    which this is the part that says where a value stands. Raises PlanError where the path is no such.
    """
    if not path.startswith("$"):
        raise PlanError(f'`path` is "{path}": begin it with `$`, the document, such as "$.id"')
    steps: list[str] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise PlanError(
                f'`path` is "{path}": after {path[:position]!r} write `.name`, `.*`, `[0]` or `[*]`, '
                'and a name of other characters as ."a name"'
            )
        if step["wild"] or step["element"]:
            steps.append(step["wild"] or step["element"])
        else:
            steps.append("." + (step["name"] or re.sub(r"\\(.)", r"\1", step["quoted"])))
        position = step.end()
    return tuple(steps)


def is_of_elements(path: str | None) -> bool:
    """Return whether a path leads to the elements of an array and no further: `$[*]`, `$[0]`."""
    steps = parse_path(path or "$")
    return len(steps) == 1 and steps[0].startswith("[")


def are_apart(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether the steps of two paths never lead to the same text: there is no text below another."""
    return len(one) != len(other) or any(map(_differ, one, other))


def _differ(one: str, other: str) -> bool:
    """Return whether two steps never lead to the same value: a member is no element, and each has one name."""
    is_element = one.startswith("[")
    if is_element != other.startswith("["):
        return True
    return one != other and (ANY_ELEMENT if is_element else ANY_MEMBER) not in {one, other}
