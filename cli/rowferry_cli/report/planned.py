"""Says what a migration was meant to do: the plan in sentences and as a document, settings, versions, dates. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from rowferry.errors import UsageError
from rowferry.formatting import format_duration
from rowferry.plan import Plan
from rowferry.plan.sides import Side
from rowferry.plan_file import parse_plan
from rowferry.reports.state import show_state
from rowferry_cli.discover.plan_text import write_pair
from rowferry_cli.report.facts import Facts, Pass
from rowferry_cli.report.model import Cell, Column, Table
from rowferry_cli.report.verdict import find_duration
from rowferry_cli.report.wording import write_moment
from rowferry_cli.setup.plan_words import describe_entries

MOST_ENTRIES = 50
Pair = tuple[str, str]


def describe_plan(facts: Facts) -> list[Pair]:
    """Return what was planned as terms and their descriptions; of a plan that cannot be read here, why not."""
    try:
        plan = parse_plan(facts.migration.plan, f"of migration {facts.report.migration}")
        return list(_describe_plan(plan))
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
    return f"bucket {side.bucket} at {side.endpoint_url or f'AWS, {side.region}'}{limit}"


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


def list_dates(facts: Facts) -> list[Pair]:
    """Return when the migration was stored, worked on, paused and switched."""
    migration, tables = facts.migration, facts.report.tables
    began = min((table.started_at for table in tables if table.started_at), default=None)
    ended = max((table.finished_at for table in tables if table.finished_at), default=None)
    took = find_duration(facts.report)
    dates = [
        ("Plan stored", migration.created_at, f", now revision {migration.revision}"),
        ("First attempt began", began, ""),
        ("Last batch ended", ended, f", after {format_duration(took)}" if took else ""),
        ("Application may switch", migration.switched_at, ", confirmed by a person"),
        ("Paused", migration.paused_at, f": {migration.pause_reason}" if migration.pause_reason else ""),
    ]
    return [(name, f"{write_moment(moment)}{more}") for name, moment, more in dates if moment]


def tabulate_settings(facts: Facts) -> Table | None:
    """Return a row a queue: how it is claimed, and what follows it; None where there is no queue."""
    rows: list[list[Cell]] = [
        [
            queue.queue,
            show_state(queue.state),
            queue.priority,
            f"{queue.weight:g}",
            "no limit" if queue.max_in_hand is None else f"{queue.max_in_hand:,}",
            ", ".join(queue.next) or "nothing",
            write_moment(queue.paused_at) if queue.paused_at else "no",
        ]
        for queue in facts.queues
    ]
    columns = [
        Column("Queue"),
        Column("State"),
        Column("Priority", "number"),
        Column("Weight", "number"),
        Column("Batches at once", "number"),
        Column("Hands on to"),
        Column("Paused"),
    ]
    return Table("Queues in the order of the chain, and how they are claimed", columns, rows) if rows else None


def tabulate_passes(passes: Sequence[Pass]) -> Table | None:
    """Return the newest passes over rows that stay; None where there was none."""
    if not passes:
        return None
    rows: list[list[Cell]] = [
        [
            f"{one.label}, pass {one.number}",
            write_moment(one.began_at),
            f"rows changed since {write_moment(one.since)}" if one.since else "all rows",
        ]
        for one in passes
    ]
    columns = [Column("Entries of", "foreign"), Column("Began"), Column("Took")]
    return Table("Passes over rows that stay, the newest first", columns, rows)
