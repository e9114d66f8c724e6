"""What is wrong with a plan, in words about its file: from msgspec's messages, and from what cannot be meant."""

import re
from collections.abc import Iterator
from typing import get_args

from rowferry.plan import Addressing, Entries, Plan, Side, Transfer

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_BUCKET = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
"""What servers take for a bucket's name; AWS takes less, and had longer ones once."""

_ALLOWED = {"transfer": get_args(Transfer), "addressing": get_args(Addressing)}
_TYPES = {"str": "text in quotes", "int": "a whole number", "float": "a number", "bool": "true or false"}


def word_type_mistake(message: str) -> str:
    """Turn msgspec's "Expected `str`, got `int` - at `$.legacy.bucket`" into a sentence about the TOML file."""
    what, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$").lstrip(".")
    table, _, key = place.rpartition(".")
    named = f"`{key}` of {_table(table)}" if table.startswith("entries[") else f"`{place}`"
    if found := re.match(r"Object contains unknown field `(.+)`", what):
        return f"{_table(place)} has an unknown key `{found[1]}`: `rowferry plan --example` shows those that there are"
    if found := re.match(r"Object missing required field `(.+)`", what):
        return f"{_table(place)} lacks the key `{found[1]}`"
    if place == "entries" and "array" in what:
        return "[entries] needs two brackets: write [[entries]], since a plan may name several tables"
    if found := re.match(r"Invalid enum value '?(.*?)'?$", what):
        allowed = ", ".join(f'"{value}"' for value in _ALLOWED.get(key, ()))
        return f'{named} is "{found[1]}": write one of {allowed}'
    if (found := re.fullmatch(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", what)) and found[1] in _TYPES:
        return f"{named} is wrong: write {_TYPES[found[1]]}"
    wanted = what[0].lower() + what[1:]
    return f"{named} is wrong: {wanted}" if place else wanted


def find_mistakes(plan: Plan) -> Iterator[str]:
    """Yield what has the right type but cannot be meant."""
    if not _NAME.fullmatch(plan.name):
        yield "the migration's `name` must be 1 to 63 letters, digits, `_`, `.` or `-`"
    if plan.max_attempts < 1:
        yield "`max_attempts` must be at least 1"
    for side in (plan.legacy, plan.production):
        yield from _mistakes_of_side(side)
    if not plan.entries:
        yield "there is no [[entries]]: name at least one table"
    labels = [entries.label for entries in plan.entries]
    for label in labels:
        if labels.count(label) > 1:
            yield f"{label} is named twice in [[entries]]: drop one of them"
    for entries in plan.entries:
        yield from _mistakes_of_entries(entries)


def _mistakes_of_side(side: Side) -> Iterator[str]:
    if not side.bucket:
        yield f"[{side.name}] has an empty `bucket`"
    elif not _BUCKET.fullmatch(side.bucket):
        yield _explain_bucket(side)
    if not side.region:
        yield f'[{side.name}] has an empty `region`: leave it out, or write the server\'s own, such as "us-east-1"'


def _explain_bucket(side: Side) -> str:
    """Return why a bucket's name cannot be one: it goes into the URL as it is."""
    said = f"`bucket` of [{side.name}] must be the bucket's name alone, not {side.bucket!r}"
    if side.bucket.startswith("arn:"):
        return f"{said}: access points and other ARNs are not supported"
    name, _, folder = side.bucket.removeprefix("s3://").strip("/").partition("/")
    if folder and _BUCKET.fullmatch(name) and ".." not in folder:
        return f"{said}: write {name!r}, and put {folder + '/'!r} into `from` or `to` of [[entries]]"
    if not folder and _BUCKET.fullmatch(name):
        return f"{said}: write {name!r}"
    return f"{said}: letters, digits, `.`, `_` and `-`, at most 255, and no `..`"


def _mistakes_of_entries(entries: Entries) -> Iterator[str]:
    if not (entries.table and entries.id and entries.key):
        yield "an [[entries]] has an empty `table`, `id` or `key`"
    if entries.legacy_prefix == entries.production_prefix:
        yield (
            f"`from` and `to` of {entries.label} are the same, so a row could not tell whether its object has moved: "
            "give `to` another prefix"
        )
    if entries.id == entries.key:
        yield f"`id` and `key` of {entries.label} are one column: the id must stay what it is while the key changes"
    if entries.where and (fault := find_fault(entries.where)):
        yield f"the `where` of {entries.label} {fault}"


def _table(place: str) -> str:
    if found := re.fullmatch(r"entries\[(\d+)\]", place):
        return f"[[entries]] number {int(found[1]) + 1}"
    return f"[{place}]" if place else "the file"


_TOKENS = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"  # strings and quoted names
    | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$               # dollar-quoted strings
    | --[^\n]* | /\*.*?\*/                                      # comments
    | (?P<open>['"]|/\*)                                        # one of those that does not end
    | (?P<mark>[();])
    """,
    re.VERBOSE | re.DOTALL,
)


def find_fault(condition: str) -> str | None:
    """Return what is wrong with the outer form of a condition, as the end of a sentence; None when nothing is.

    Whether it means something is for PostgreSQL to say.
    """
    depth = 0
    rest = condition
    for token in _TOKENS.finditer(condition):
        if token["open"]:
            return f"has a {token['open']} that nothing closes: close it"
        if token["mark"] == ";":
            return "has a semicolon: give a condition, not a statement"
        depth += {"(": 1, ")": -1}.get(token["mark"], 0)
        if depth < 0:
            return "closes a bracket that it has not opened"
        if token[0].startswith(("--", "/*")):
            rest = rest.replace(token[0], "", 1)
    if depth:
        return "has a bracket that nothing closes"
    if not rest.strip():
        return "says nothing: leave it out, or give a condition"
    return None
