"""Proposes [[entries]] whose keys are computed: from a row's id and the file name that a column holds, or the id."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, cast

from psycopg import sql

from rowferry.db.connection import identifiers
from rowferry_cli.discover.computed_keys.patterns import Keys, Pattern, fit, group_by_id, list_constant, rank
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.bucket_folders import list_samples
from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, UserTable
from rowferry_cli.discover.evidence.folders import write_pattern
from rowferry_cli.discover.evidence.measure import Measured, measure_objects
from rowferry_cli.discover.evidence.named import LEAST_SHARE, ColumnTexts, Named
from rowferry_cli.discover.evidence.telling_columns import find_change_column
from rowferry_cli.discover.evidence.written_sql import quote_name
from rowferry_cli.discover.proposals import Proposal, explain_stay, name_rows
from rowferry_enqueue.checks.buckets.spellings import list_spellings

ReadStates = Callable[[UserTable], Mapping[str, Sequence[str]]]
"""Returns the columns of a table that may say where objects are, with values."""
MOST_IDS = 40
"""Of one folder that rows are looked up by."""
MOST_OPTIONAL = 8
"""Objects of a row beside the first: smaller versions."""
FEW_ROWS, LEAST_ROWS, MANY_ROWS = 40, 3, 20
"""Rows that an id alone is tried on first; that must have the object; the same in a folder of another name."""

_FILE_NAME = re.compile(r"[^/]+\.\w{1,8}")
_NUMBERS = {"smallint": 4, "integer": 9, "bigint": 18}
"""Digits that fit in surely."""


class _Fit(NamedTuple):
    """Keys that differ in a row's id alone."""

    table: UserTable
    pattern: Pattern
    measured: Measured

    @property
    def is_named(self) -> bool:
        """Whether the key's words are those of the table."""
        return self.table.name.lower().rstrip("s")[:12] in (self.pattern.before + self.pattern.after).lower()


class ComputedFinder:
    """Compares keys of the bucket that no column holds with rows."""

    def __init__(self, catalogue: Catalogue, bucket: LegacyBucket, read_states: ReadStates, *, sample: int) -> None:
        """`sample`: rows of each table."""
        self._catalogue, self._bucket, self._read_states = catalogue, bucket, read_states
        self._sample = sample

    def list_keys(self, named: Sequence[Named]) -> Keys:
        """Return keys of the bucket that no column names; `named`: what columns name, folders of objects as well."""
        known = {key for one in named for key in one.keys}
        folders = [write_pattern(one) for one in named if one.names_folders]
        listed = [key for key in list_samples(self._bucket) if key not in known]
        return group_by_id(key for key in listed if not any(pattern.match(key) for pattern in folders))

    def find_by_names(self, columns: Sequence[ColumnTexts], keys: Keys) -> Iterator[Proposal]:
        """Yield what columns of file names stand for."""
        for texts in columns:
            names = sum(1 for text in texts.texts if _FILE_NAME.fullmatch(text))
            if len(texts.table.id) != 1 or 2 * names < len(texts.texts):
                continue
            patterns = rank(self._count(texts, keys))
            if patterns and (found := self._propose_names(texts, patterns[: MOST_OPTIONAL + 1])) is not None:
                yield found

    def _count(self, texts: ColumnTexts, keys: Keys) -> Counter[Pattern]:
        """Return how many rows have a listed object of each pattern."""
        counts = Counter[Pattern]()
        value = sql.SQL("e.{}::text").format(identifiers(texts.column.name))
        for (before, form), afters in keys.items():
            ids = [one for one in afters if _may_be_id(one, texts.table)]
            for row in self._catalogue.find_rows(texts.table, texts.table.id[0], ids[:MOST_IDS], value):
                names = [row.value] if texts.path is None else _read_list(row.value)
                found = {fit(after, name) for after in afters.get(row.id[0], ()) for name in names}
                counts.update(Pattern(before, form, after) for after in found if after is not None)
        return counts

    def _propose_names(self, texts: ColumnTexts, patterns: Sequence[Pattern]) -> Proposal | None:
        first, *others = patterns
        entries = {"key": texts.column.name, "from": "", "to": "", "objects": write_objects(texts, [first])}
        measured = measure_objects(
            self._catalogue, self._bucket, texts.table, name_rows(texts.table) | entries, self._sample
        )
        if not measured.existing or measured.existing * LEAST_SHARE < measured.sampled:
            return None
        if others:
            entries["optional"] = write_objects(texts, others)
        words = f"The column holds file names; the keys are made of {first.before!r}, the id and the name."
        return self._propose(texts.table, entries, measured, words)

    def find_by_spelling(self, columns: Sequence[ColumnTexts]) -> Iterator[Proposal]:
        """Yield columns whose texts are keys in another Unicode form, or with `+` where the bucket has a space."""
        for texts in columns:
            name = quote_name(texts.column.name)
            tried = () if texts.path else (spelled for text in texts.texts for spelled in list_spellings(text, name))
            for expression in dict.fromkeys(written for _, written in tried):
                entries = {"key": texts.column.name, "from": "", "to": "", "objects": expression}
                rows = name_rows(texts.table) | entries
                measured = measure_objects(self._catalogue, self._bucket, texts.table, rows, self._sample)
                if measured.existing >= LEAST_ROWS and 2 * measured.existing >= measured.sampled:
                    words = "The bucket spells these keys otherwise: `objects` does as well."
                    yield self._propose(texts.table, entries, measured, words)
                    break

    def find_by_ids(self, keys: Keys, named: Sequence[Named], taken: Set[str]) -> Iterator[Proposal]:
        """Yield tables whose objects are named by the row's id alone; `taken`: tables whose objects are known."""
        folders = {(one.table.plan_name, key.partition("/")[0]) for one in named for key in one.keys if "/" in key}
        fits: list[_Fit] = []
        for pattern, ids in list_constant(keys):
            folder = pattern.before.partition("/")[0]
            tried = [
                self._measure(table, pattern)
                for table in self._catalogue.tables
                if len(table.id) == 1 and any(_may_be_id(one, table) for one in ids)
                if table.plan_name not in taken and (table.plan_name, folder) not in folders
            ]
            # Ids of any table may be those in a folder by chance.
            likely = [one for one in tried if one is not None]
            fits += sorted(likely, key=lambda one: (not one.is_named, -one.measured.existing))[:1]
        for table in dict.fromkeys(one.table.plan_name for one in fits):
            yield self._propose_ids([one for one in fits if one.table.plan_name == table])

    def _measure(self, table: UserTable, pattern: Pattern) -> _Fit | None:
        entries = name_rows(table) | {"key": table.id[0], "objects": pattern.write(quote_name(table.id[0]))}
        for rows in (min(FEW_ROWS, self._sample), self._sample):
            found = _Fit(table, pattern, measure_objects(self._catalogue, self._bucket, table, entries, rows))
            existing, sampled = found.measured.existing, found.measured.sampled
            if found.is_named and (existing < LEAST_ROWS or existing * 5 < sampled):
                return None
            if not found.is_named and (existing < MANY_ROWS or 10 * existing < 9 * sampled):
                return None
        return found

    def _propose_ids(self, fits: Sequence[_Fit]) -> Proposal:
        table, row_id = fits[0].table, quote_name(fits[0].table.id[0])
        ranked = sorted(fits, key=lambda one: (one.pattern.is_smaller, -one.measured.existing, one.pattern))
        first, *others = (one.pattern.write(row_id) for one in ranked)
        entries = {"key": table.id[0], "from": "", "to": "", "objects": first}
        if others:
            entries["optional"] = "array[{}]".format(",\n  ".join(others)) if others[1:] else others[0]
        words = "No column holds the keys: `objects` computes them from the id, as the application seems to do."
        return self._propose(table, entries, ranked[0].measured, words)

    def _propose(self, table: UserTable, entries: dict[str, Any], measured: Measured, words: str) -> Proposal:
        entries = name_rows(table) | entries | {"rows": "stay"}
        if changed := find_change_column(table):
            entries["changed"] = changed
        seen = [f"For example {measured.example_key!r}."]
        if_stays = list(explain_stay(table, self._read_states(table)))
        return Proposal(entries, measured.sampled, measured.existing, [words], seen=seen, if_stays=if_stays)


def _may_be_id(text: str, table: UserTable) -> bool:
    """Return whether a text of a key could be an id of a table."""
    column = table.columns[table.id[0]]
    if text.isdigit():
        return column.kind == "text" or len(text) <= _NUMBERS.get(column.type, 0)
    return column.type == "uuid" or column.kind == "text"


def _read_list(value: str) -> list[str]:
    try:
        document: Any = json.loads(value)
    except ValueError:
        return []
    return [text for text in cast("list[Any]", document) if isinstance(text, str)] if isinstance(document, list) else []


def write_objects(texts: ColumnTexts, patterns: Sequence[Pattern]) -> str:
    """Return SQL over a row that yields the keys by some patterns: text, or text[] where there are several."""
    row_id, column = quote_name(texts.table.id[0]), quote_name(texts.column.name)
    value = column if texts.path is None else "f.value"
    keys = [pattern.write(row_id, value) for pattern in patterns]
    if texts.path is None:
        return keys[0] if len(keys) == 1 else "array[{}]".format(",\n  ".join(keys))
    names = f"{_write_list(texts.column, column)} as f (value)"
    if len(keys) == 1:
        return f"array(select {keys[0]} from {names})"  # noqa: S608 - for the plan, which users read
    rows = ", ".join(f"({key})" for key in keys)
    return f"array(select k.key from {names}, lateral (values {rows}) as k (key))"  # noqa: S608


def _write_list(column: Column, name: str) -> str:
    """Return SQL for the rows that a list of file names has."""
    if column.kind == "array":
        return f"unnest({name})"
    kind, value = (column.type, name) if column.kind == "json" else ("json", f"{name}::json")
    return f"{kind}_array_elements_text({value})"
