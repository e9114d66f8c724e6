"""Checks some legacy entries of each table, and shows what becomes of them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

import msgspec

from rowferry.batch import Entry
from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.formatting import count, shorten
from rowferry.keys import ObjectKeys, has_form, map_entry
from rowferry.plan import Entries, Plan
from rowferry.progress import OnProgress
from rowferry_enqueue.checks.buckets.objects import Sample
from rowferry_enqueue.checks.finding import Finding, note, problem, quote_key
from rowferry_enqueue.checks.rows.scans import scan

SAMPLED = 100
"""Entries whose objects are looked at, of all tables together."""
MIN_SAMPLED = 10
"""Of each table, however many tables there are."""
EXAMPLES = 3
"""Keys shown for each table."""


def sample_entries(
    connection: Connection, tables: Sequence[EntryQueries], on_progress: OnProgress
) -> tuple[list[Sample], list[Finding]]:
    """Return legacy entries of each table, spread over its ids, and what could not be scanned; one scan a table."""
    limit = max(MIN_SAMPLED, SAMPLED // max(1, len(tables)))
    samples: list[Sample] = []
    unscanned: list[Finding] = []

    def look(queries: EntryQueries) -> list[Finding]:
        query = queries.compose("sample_entries", wanted=queries.has_form("legacy"))
        rows = connection.execute(query, queries.parameters(most=limit)).fetchall()
        samples.append(Sample.of(queries.entries, to_entries(rows)))
        return []

    for queries in tables:
        on_progress(f"choosing examples of {queries.entries.label}")
        unscanned += scan(connection, partial(look, queries), queries)
    return samples, unscanned


def check_samples(
    connection: Connection, plan: Plan, samples: Sequence[Sample], *, allow_empty: bool
) -> Iterator[Finding]:
    """Yield examples, and why there is nothing to migrate."""
    for sample in samples:
        yield from show_examples(sample)
    yield from _check_emptiness(connection, plan, samples, allow_empty=allow_empty)


def show_examples(sample: Sample) -> list[Finding]:
    """Return what becomes of some texts and objects."""
    examples = dict.fromkeys(words for entry in sample.sampled for words in _describe_entry(entry, sample.entries))
    return [note(f"{sample.entries.label}: for example {words}") for words in islice(examples, EXAMPLES)]


def _describe_entry(entry: Entry, entries: Entries) -> Iterator[str]:
    """Yield what becomes of the texts and objects of an entry; nothing where it cannot be mapped."""
    with suppress(ValueError):
        objects, new_key = map_entry(entry, entries)
        texts = _pair_texts(entry.key, new_key, entries)
        thing = "folder" if entries.names_folders else "object"
        if not entries.computes_objects:
            for (old, new), keys in zip(texts, objects, strict=True):
                yield _describe(old, new, keys, thing)
        else:
            (old, new), keys = texts[0], objects[0]
            more = f", and {count(len(objects) - 1, thing, f'{thing}s')} more" if objects[1:] else ""
            yield _describe(old, new, keys, thing) + more


def _pair_texts(key: str, new_key: str, entries: Entries) -> list[tuple[str, str]]:
    if not entries.has_places:
        return [(key, new_key)]
    old, new = (msgspec.json.decode(each, type=dict[str, str]) for each in (key, new_key))
    return [(old[place], new[place]) for place in old if has_form(old[place], entries, "legacy")]


def _describe(old: str, new: str, keys: ObjectKeys, thing: str) -> str:
    if (old, new) == (keys.legacy, keys.production) and old != new:
        return f"{quote_key(old)} becomes {quote_key(new)}"
    text = f"{quote_key(old)} stays" if old == new else f"{quote_key(old)} becomes {quote_key(new)}"
    if keys.legacy == keys.production:
        return f"{text}, and its {thing} {quote_key(keys.legacy)} keeps its key"
    return f"{text}, and its {thing} {quote_key(keys.legacy)} becomes {quote_key(keys.production)}"


def _check_emptiness(
    connection: Connection, plan: Plan, samples: Sequence[Sample], *, allow_empty: bool
) -> Iterator[Finding]:
    """Yield a problem where no table has a legacy entry, unless that is allowed."""
    if allow_empty or not plan.entries or len(samples) < len(plan.entries):
        return
    if any(sample.sampled for sample in samples):
        return
    counts = ", ".join(_count_forms(connection, sample.entries) for sample in samples)
    told = [f"`{name}`" for name in ("from", "key", *_list_more(plan.entries))]
    remedy = f"correct {', '.join(told)} or `where` in the plan, or add --allow-empty where all is migrated already"
    yield problem(f"there are 0 legacy entries to migrate: {counts}", remedy)


def _list_more(plan_entries: Iterable[Entries]) -> list[str]:
    """Return the fields that say which rows are legacy, beside the usual ones."""
    return [name for name in ("path", "moved", "objects") if any(getattr(each, name) for each in plan_entries)]


def _count_forms(connection: Connection, entries: Entries) -> str:
    with translated_errors():
        queries = EntryQueries.of(connection, entries)
        row = fetch_one(connection, queries.compose("count_entries"), queries.parameters())
        found = connection.execute(queries.compose("find_unexpected"), queries.parameters()).fetchone()
    example = "" if found is None else f" (for example {quote_key(shorten(found['text']))})"
    counts = f"{row['production']:,} in production form and {row['unexpected']:,} in neither"
    return f"{entries.label} has {counts}{example}"
