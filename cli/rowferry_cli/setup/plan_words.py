"""Says in plain English what a plan means: its sides, and what becomes of rows, their texts and objects."""

from collections.abc import Iterator
from typing import cast

from msgspec import to_builtins

from rowferry.plan import PROPERTIES, Entries, Plan, ProductionSide, QueueSettings
from rowferry.queue_spec import QueueSpec
from rowferry.queues import find_queue, read_settings
from rowferry_cli.messages import describe_direction


def describe_plan(plan: Plan) -> Iterator[str]:
    """Yield the plan in words."""
    simulated = " (simulated: `rowferry prepare` may delete all of it)" if plan.migration.simulated else ""
    yield f"Migration {plan.name}{simulated}"
    yield from describe_direction(plan)
    attempts = f"at most {plan.migration.max_attempts} attempts per batch"
    if plan.has_both_sides:
        copies = "the production server copies them itself" if plan.server_side else "workers download and upload them"
        yield f"  objects: {copies}; {attempts}"
    else:
        yield f"  no object moves, since there is one bucket at most; {attempts}"
    if plan.production_side is not None and (described := describe_properties(plan.production_side)):
        yield f"  production objects: {described}"
    if limit := plan.database.max_rows_per_second:
        yield f"  rows: at most {limit:g} a second, of all workers together"
    for entries in plan.entries:
        yield from describe_entries(entries)
    for objects in plan.objects:
        yield "  objects without rows"
        yield f"    {objects.prefix}…  becomes  {objects.production_object_prefix}…"
    yield from describe_queues(plan)


def describe_properties(side: ProductionSide) -> str:
    """Return what the plan says of production objects, as it is written there; empty where it says nothing."""
    said = to_builtins(side)
    return ", ".join(f"{name} {said[name]}" for name in PROPERTIES if name in said)


def describe_entries(entries: Entries) -> Iterator[str]:
    """Yield the lines about one [[entries]]."""
    name = f" ({entries.name})" if entries.name else ""
    yield f"  rows of {entries.table} by {entries.id_words}{f', where {entries.where}' if entries.where else ''}{name}"
    for line in (
        *_describe_text(entries),
        *_describe_objects(entries),
        *_describe_states(entries),
        *_describe_staying_rows(entries),
    ):
        yield f"    {line}"


def _describe_text(entries: Entries) -> Iterator[str]:
    column = f"{entries.key} at {entries.path}" if entries.path else entries.key
    column = f"each URL in {column}" if entries.within else column
    if entries.key_column is None:
        return
    if entries.has_two_texts:
        yield f"{column}: {entries.legacy_prefix}…  becomes  {entries.production_prefix}…"
    else:
        begins = f" that begins with {entries.legacy_prefix}" if entries.legacy_prefix else ""
        yield f"{column}: every text{begins} stays as it is"
    if entries.encoding == "percent":
        yield "the text is percent-encoded; ?… and #… are no part of a key"


def _describe_objects(entries: Entries) -> Iterator[str]:
    prefixes = (entries.legacy_object_prefix, entries.production_object_prefix)
    if entries.objects is not None:
        yield f"a row's objects are {_in_one_line(entries.objects)}"
    if entries.optional is not None:
        begin = "a row's objects, unless missing, are" if entries.objects is None else "and, unless they are missing,"
        yield f"{begin} {_in_one_line(entries.optional)}"
    if prefixes[0] == prefixes[1]:
        begins = f", which begin with {prefixes[0]}" if prefixes[0] else ""
        yield f"objects keep their keys{begins}"
    elif entries.computes_objects or prefixes != (entries.legacy_prefix, entries.production_prefix):
        yield f"objects: {prefixes[0]}…  becomes  {prefixes[1]}…"


def _describe_states(entries: Entries) -> Iterator[str]:
    changes = [f"{column} becomes {new!r}, from {old!r}" for column, (old, new) in entries.moved.items()]
    if changes:
        yield f"with the objects, {' and '.join(changes)}"


def _describe_staying_rows(entries: Entries) -> Iterator[str]:
    if entries.rows == "stay":
        again = f"whose {entries.changed} has changed" if entries.changed else "again"
        yield f"rows are never written; later passes take all {again}"


def describe_queues(plan: Plan) -> Iterator[str]:
    """Yield the lines about the queues that the plan names. Raises UsageError for one that is wrong, or not known."""
    for name, settings in read_settings(plan).items():
        spec = find_queue(name)
        yield f"  queue {name}: {spec.summary[:1].lower()}{spec.summary[1:].rstrip('.')}"
        for line in _describe_queue(spec, settings, plan):
            yield f"    {line}"


def _describe_queue(spec: QueueSpec, settings: QueueSettings, plan: Plan) -> Iterator[str]:
    named = [one.label for one in plan.entries if settings.means(one.label) and "table" in spec.sources]
    named += [one.label for one in plan.objects if settings.means(one.label) and "listing" in spec.sources]
    named += [bucket.label for bucket in settings.buckets]
    items = ["items that are enqueued"] if "items" in spec.sources else []
    yield f"works on {', '.join([*named, *items]) or 'what other queues hand on to it'}"
    own = [name for name in settings.__struct_encode_fields__ if name not in QueueSettings.__struct_encode_fields__]
    said = plan.queue.get(spec.name, {})
    for name in own:
        if name in said:
            yield f"{name}: {_in_one_line(_say(said[name]))}"
    if settings.then:
        yield f"what it has settled goes on to {', '.join(settings.then)}, batch by batch"
    claims = f"claimed with priority {settings.priority} and weight {settings.weight:g}"
    limit = "" if settings.max_claimed is None else f", at most {settings.max_claimed:,} batches at once on all hosts"
    yield f"{claims}{limit}"


def _say(value: object, joint: str = " = ") -> str:
    """Return a value of the plan in words: `{a = "x", b = {column = "t"}}` as a = x, b = column t."""
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return ", ".join(f"{name}{joint}{_say(one, ' ')}" for name, one in pairs)
    if isinstance(value, list):
        return ", ".join(_say(one, " ") for one in cast("list[object]", value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_one_line(expression: str) -> str:
    return " ".join(expression.split())
