"""Counts the legacy entries of tables and takes some keys, without a long scan of what is huge."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from math import sqrt
from statistics import mean, stdev

from psycopg import errors

from rowferry.batch import Entry
from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.description import describe
from rowferry.db.entries import EntryQueries, to_entries
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.keys import map_entry
from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry_cli.estimate.intervals import Z

SCANNED_BYTES = 256 * 1024**2
"""The largest table that is read whole: about a second."""
STATEMENT_TIMEOUT = timedelta(seconds=10)
"""After it, a statement over a user's table is given up."""
SAMPLED_BLOCKS = 2000
"""Blocks of a larger table that are read at first: 16 MB."""
WIDER = 8
"""So many times as many blocks are read where the first held too few legacy entries, twice at the most."""
MIN_LEGACY = 200
DRAWS = 8
"""The blocks are drawn in so many parts, whose spread says how sure the count is."""
FEW_DRAWS = 2.365 / Z
"""Student's t of seven degrees of freedom in the place of the normal distribution's quantile."""


@dataclass(frozen=True, slots=True)
class TableSample:
    """The legacy entries of one [[entries]] or [[objects]]: how many there are, and the keys of some."""

    entries: Entries | ObjectPrefix
    count: float
    standard_error: float
    """Of `count`; 0: it was counted."""
    keys: tuple[tuple[str, str], ...]
    """Legacy keys, each with the production key that it becomes, in a random order."""
    unusable: int = 0
    """Sampled keys beside them that cannot become a production key: their entries fail without a request."""
    is_whole: bool = True
    """Whether a listing came to its end; else there are more."""
    objects_per_entry: float = 1.0
    """Of those that can."""

    @property
    def is_exact(self) -> bool:
        """Return whether the entries were counted."""
        return self.standard_error == 0


def sample_tables(
    connection: Connection, plan: Plan, most: int, on_progress: Callable[[str], None]
) -> list[TableSample]:
    """Return a sample of each table of the plan with up to `most` keys; the connection is in autocommit.

    Raises UsageError when a table cannot be read, also within the timeout.
    """
    samples: list[TableSample] = []
    for entries in plan.entries:
        on_progress(f"counting {entries.label}")
        with translated_errors():
            samples.append(_sample_table(connection, entries, most))
    return samples


def _sample_table(connection: Connection, entries: Entries, most: int) -> TableSample:
    queries = EntryQueries.of(connection, entries)
    described = describe(connection, entries)
    size = fetch_one(connection, statement("table_size"), {"table": described.table_number})
    try:
        if size["bytes"] <= SCANNED_BYTES:
            try:
                return _count_table(connection, queries, most)
            except errors.QueryCanceled:
                pass  # a slow server, or a costly condition: a part of the table may do
        return _sample_blocks(connection, queries, most, size["blocks"])
    except errors.QueryCanceled:
        seconds = f"{STATEMENT_TIMEOUT.total_seconds():g} s"
        remedy = "is its `where` costly, or the server busy? Try again later"
        raise UsageError(
            f"PostgreSQL did not read even a part of {entries.table} within {seconds}: {remedy}."
        ) from None


def _count_table(connection: Connection, queries: EntryQueries, most: int) -> TableSample:
    with _bounded(connection):
        count = fetch_one(connection, queries.compose("count_legacy"), queries.parameters())["legacy"]
        rows = connection.execute(queries.compose("sample_entries"), queries.parameters(most=most)).fetchall()
    return _make_sample(queries.entries, count, 0.0, to_entries(rows))


def _sample_blocks(connection: Connection, queries: EntryQueries, most: int, blocks: int) -> TableSample:
    """Return the sample by some of a table's blocks; a table of few blocks is read whole."""
    share = min(1.0, SAMPLED_BLOCKS / max(1, blocks))
    while True:
        started = time.monotonic()
        draws = [_draw_blocks(connection, queries, most, share, seed) for seed in range(1 if share == 1 else DRAWS)]
        found, seconds = sum(count for count, _ in draws), time.monotonic() - started
        if share == 1 or found >= MIN_LEGACY or seconds * WIDER > STATEMENT_TIMEOUT.total_seconds():
            break
        share = min(1.0, share * WIDER)
    count, error = extrapolate([count for count, _ in draws], share)
    return _make_sample(queries.entries, count, error, _mix([sampled for _, sampled in draws])[:most])


def _draw_blocks(
    connection: Connection, queries: EntryQueries, most: int, share: float, seed: int
) -> tuple[int, list[Entry]]:
    """Return the legacy entries in one draw of blocks, and some of them; all draws together read `share`."""
    percent = 100.0 if share == 1 else 100 * share / DRAWS
    parameters = queries.parameters(percent=percent, seed=seed, most=most)
    with _bounded(connection):
        count = fetch_one(connection, queries.compose("count_in_blocks"), parameters)["legacy"]
        rows = connection.execute(queries.compose("sample_entries_in_blocks"), parameters).fetchall()
    return count, to_entries(rows)


def extrapolate(counts: Sequence[int], share: float) -> tuple[float, float]:
    """Return the entries of a table and their standard error by the counts of draws that make up a share of it.

    The error comes from the spread of the draws, so it holds where legacy entries stand together, and needs no right
    to read the blocks' numbers. No entry in any draw does not mean that there is none.
    """
    if share == 1:
        return float(sum(counts)), 0.0
    totals = [count * len(counts) / share for count in counts]
    error = stdev(totals) / sqrt(len(totals)) * FEW_DRAWS * sqrt(1 - share)
    return mean(totals), max(error, 1 / share)


def _mix(lists: Sequence[Sequence[Entry]]) -> list[Entry]:
    """Return the entries of all draws in turn, each once."""
    return list(dict.fromkeys(entry for each in zip_longest(*lists) for entry in each if entry is not None))


def _make_sample(entries: Entries, count: float, error: float, sampled: list[Entry]) -> TableSample:
    keys: list[tuple[str, str]] = []
    unusable = 0
    for entry in sampled:
        try:
            keys += [(each.legacy, each.production) for each in map_entry(entry, entries).objects]
        except ValueError:
            unusable += 1
    usable = len(sampled) - unusable
    return TableSample(
        entries, count, error, tuple(keys), unusable, objects_per_entry=len(keys) / usable if keys else 1.0
    )


@contextmanager
def _bounded(connection: Connection) -> Generator[None]:
    """End the statements of the block after STATEMENT_TIMEOUT."""
    with connection.transaction():
        milliseconds = f"{int(STATEMENT_TIMEOUT.total_seconds() * 1000)}ms"
        connection.execute(statement("limit_statement"), {"timeout": milliseconds})
        yield
