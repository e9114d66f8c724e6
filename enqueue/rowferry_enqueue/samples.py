"""Some entries of each table, as examples, and to look whether their objects are there."""

from collections.abc import Iterable
from dataclasses import dataclass

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.entries import EntrySql
from rowferry.db.statements import statement
from rowferry.errors import DatabaseUnavailable, RowferryError
from rowferry.plan import Entries, Plan
from rowferry.s3.listing import OnProgress
from rowferry_enqueue.check_keys import quote_key
from rowferry_enqueue.finding import Finding, note, problem

SAMPLED = 100
"""Entries whose objects are looked at, of all tables together."""
LEAST_SAMPLED = 10
"""Entries of each table at least, however many tables there are."""
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """Legacy keys of one [[entries]], each with the production key that it becomes."""

    entries: Entries
    keys: tuple[tuple[str, str], ...]


def sample_entries(connection: Connection, plan: Plan, on_progress: OnProgress) -> list[Sample]:
    """Return legacy entries of each table that can be read, spread over its ids; one scan a table."""
    most = max(LEAST_SAMPLED, SAMPLED // len(plan.entries))
    samples: list[Sample] = []
    for entries in plan.entries:
        on_progress(f"choosing examples of {entries.label}")
        try:
            with translated_errors(), connection.transaction():
                entry_sql = EntrySql.of(connection, entries)
                rows = connection.execute(entry_sql.compose("sample_keys"), entry_sql.parameters(most=most)).fetchall()
        except DatabaseUnavailable:
            raise
        except RowferryError:
            continue  # the check of the table has said why
        samples.append(Sample(entries, tuple((row["legacy_key"], row["production_key"]) for row in rows)))
    return samples


def show_examples(samples: Iterable[Sample]) -> list[Finding]:
    """Return three examples of each table: an old key, and the new one."""
    return [
        note(f"{sample.entries.label}: for example {quote_key(old)} becomes {quote_key(new)}")
        for sample in samples
        for old, new in list(dict.fromkeys(sample.keys))[:EXAMPLES]
    ]


def check_emptiness(connection: Connection, plan: Plan, samples: list[Sample], *, allow_empty: bool) -> list[Finding]:
    """Return a problem where no table has a legacy entry, unless that is allowed."""
    if allow_empty or len(samples) < len(plan.entries) or any(sample.keys for sample in samples):
        return []
    words = ", ".join(_tell_forms(connection, sample.entries) for sample in samples)
    remedy = "correct `from`, `key` or `where` in the plan, or add --allow-empty where all is migrated already"
    return [problem(f"there are 0 legacy entries to migrate: {words}", remedy)]


def knows_migration(connection: Connection, plan: Plan) -> bool:
    """Return whether entries of this plan were migrated before, as far as the queue remembers."""
    with translated_errors():
        if not fetch_one(connection, statement("has_schema"))["has_schema"]:
            return False
        return connection.execute(statement("find_migration"), {"name": plan.name}).fetchone() is not None


def _tell_forms(connection: Connection, entries: Entries) -> str:
    with translated_errors():
        entry_sql = EntrySql.of(connection, entries)
        row = fetch_one(connection, entry_sql.compose("count_entries"), entry_sql.parameters())
    return f"{entries.label} has {row['production']:,} in production form and {row['unexpected']:,} in neither"
