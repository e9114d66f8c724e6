"""Says what a migration was meant to do: the plan in sentences, and as the lines of a file. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from rowferry.errors import UsageError
from rowferry.plan import Plan
from rowferry.plan.sides import Side
from rowferry.plan_file import parse_plan
from rowferry_cli.discover.plan_text import write_pair
from rowferry_cli.setup.plan_words import describe_entries

MOST_ENTRIES = 50
Pair = tuple[str, str]


def describe_plan(migration: str, document: dict[str, Any]) -> list[Pair]:
    """Return what was planned as terms and their descriptions; of a plan that cannot be read here, why not."""
    try:
        return list(_describe_plan(parse_plan(document, f"of migration {migration}")))
    except UsageError as error:
        return [("Plan", f"It cannot be read by this version of rowferry. {error}")]


def _describe_plan(plan: Plan) -> Iterator[Pair]:
    if plan.legacy_side:
        yield "From", _describe_side(plan.legacy_side)
    if plan.production_side:
        yield "To", _describe_side(plan.production_side)
    if plan.has_both_sides:
        yield "Copies", "made by the production server" if plan.server_side else "streamed through the workers"
    for entries in plan.entries[:MOST_ENTRIES]:
        first, *more = (line.strip() for line in describe_entries(entries))
        yield "Rows", f"{first.removeprefix('rows of ')}; {'; '.join(more)}"
    if len(plan.entries) > MOST_ENTRIES:
        yield "Rows", f"of {len(plan.entries) - MOST_ENTRIES} more tables; see the plan below"
    for objects in plan.objects[:MOST_ENTRIES]:
        becomes = f" become {objects.production_object_prefix}…"
        yield "Objects", f"without rows, {objects.prefix or 'all'}…{becomes}"
    limit = plan.database.max_rows_per_second
    if limit:
        yield "Limit", f"{limit:g} rows a second, of all workers together"


def _describe_side(side: Side) -> str:
    limit = f", at most {side.max_requests_per_second:g} requests/s" if side.max_requests_per_second else ""
    return f"bucket {side.bucket} at {side.endpoint_url or f'AWS, {side.region_or_default}'}{limit}"


def write_plan(document: Mapping[str, Any]) -> list[str]:
    """Return the plan as the lines of a TOML file, also one of another version, which may have any values."""
    plain = {name: value for name, value in document.items() if not _list_tables(value)}
    lines = [*_write_pairs(plain), ""] if any(_write_pairs(plain)) else []
    for name, value in document.items():
        for table in _list_tables(value):
            if isinstance(value, list):
                lines += _write_table(f"[[{name}]]", table)
                continue
            inner = [key for key, own in table.items() if name == "queue" and isinstance(own, Mapping)]
            own = {key: one for key, one in table.items() if key not in inner}
            lines += _write_table(f"[{name}]", own) if own or not inner else []
            lines += [line for key in inner for line in _write_table(f"[{name}.{key}]", table[key])]
    return lines[:-1]


def _list_tables(value: object) -> list[Mapping[str, Any]]:
    """Return a table, or an array of tables, as a list; empty for any other value."""
    many = cast("list[object]", value if isinstance(value, list) else [value])
    return [cast("Mapping[str, Any]", one) for one in many] if all(isinstance(one, Mapping) for one in many) else []


def _write_pairs(table: Mapping[str, Any]) -> list[str]:
    pairs = [write_pair(key, value) for key, value in table.items() if value not in (None, {}, [])]
    return [line for pair in pairs for line in pair.split("\n")]


def _write_table(head: str, table: Mapping[str, Any]) -> list[str]:
    return [head, *_write_pairs(table), ""]
