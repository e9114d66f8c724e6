"""Finds objects whose keys an application computes from columns: slices, digests, several columns, thumbnails."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from psycopg import sql

from rowferry.db.connection import identifiers, literal
from rowferry_cli.discover.computed_keys.numbered import NUMBERS, learn_from_numbers
from rowferry_cli.discover.computed_keys.owners import list_document_columns, list_owner_columns
from rowferry_cli.discover.computed_keys.row_texts import SHA1, RowTexts, Values, group_by_strong, list_strong
from rowferry_cli.discover.computed_keys.templates import LEAST_PAIRS, Template, learn
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, Row, UserTable
from rowferry_cli.discover.evidence.measure import Measured, measure_objects
from rowferry_cli.discover.proposals import name_rows

MOST_PAIRS = 300
"""Rows and keys of one table that are compared."""
MOST_LOOKED_UP = 2000
"""Ids that are read off keys and looked up in one column."""
LONGEST = 250
"""Characters of a value that a key may hold."""
MOST_TEMPLATES = 16
"""Of one table that are tried on rows."""
FIRST_ROWS = 40
"""That a template is tried on, before it is on all sampled rows."""
MANY_NUMBERS = 20
"""Rows whose objects are named by their numbers alone, in a folder that is not named like the table."""
LEAST_SHARE = 5
"""One row in so many must have the object, or it is a coincidence."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A template of a table's keys, and how many sampled rows have the object."""

    template: Template
    measured: Measured

    @property
    def share(self) -> float:
        """The part of the rows whose objects exist."""
        return self.measured.existing / max(1, self.measured.sampled)


def find_conventions(
    catalogue: Catalogue, bucket: LegacyBucket, keys: Sequence[str], most: int, lacking: list[UserTable]
) -> Iterator[tuple[UserTable, list[Fit]]]:
    """Yield tables with templates of their rows' keys, which are learned from some keys that no column holds.

    Adds to `lacking` the tables whose keys hold a digest that this database cannot compute, once for each rule.
    """
    by_token = group_by_strong(keys)
    found: list[tuple[UserTable, Fit]] = []
    for table in catalogue.tables:
        if not table.id:
            continue
        templates = [*_learn(catalogue, table, by_token, most), *learn_from_numbers(table, keys)]
        for learned in sorted(templates, key=lambda one: -one.pairs)[:MOST_TEMPLATES]:
            template = learned
            if learned.has(SHA1):
                if (function := catalogue.digest) is None:
                    lacking.append(table)
                    continue
                template = learned.replace(SHA1, f"{function}(")
            # Ids of any table may be numbers in a folder by chance.
            is_named = not template.is_of_numbers or _name_stem(table) in template.literals.lower()
            entries = name_rows(table) | {"key": table.id[0], "objects": template.sql}
            first = measure_objects(catalogue, bucket, table, entries, min(FIRST_ROWS, most))
            if not _is_likely(first, is_named=is_named):
                continue
            measured = measure_objects(catalogue, bucket, table, entries, most)
            if measured.existing >= LEAST_PAIRS and _is_likely(measured, is_named=is_named):
                found.append((table, Fit(template, measured)))
    best = _drop_worse(found)
    for table in catalogue.tables:
        if fits := [fit for owner, fit in best if owner is table]:
            yield table, fits


def _is_likely(measured: Measured, *, is_named: bool) -> bool:
    if not is_named:
        return measured.existing >= MANY_NUMBERS and 10 * measured.existing >= 9 * measured.sampled
    return measured.existing > 0 and measured.existing * LEAST_SHARE >= measured.sampled


def _name_stem(table: UserTable) -> str:
    return table.name.lower().rstrip("s")[:12]


def _learn(catalogue: Catalogue, table: UserTable, by_token: Mapping[str, Sequence[str]], most: int) -> list[Template]:
    """Return the templates of a table's keys; where its own columns do not explain all, with those of its owners."""
    columns = {column.name: column for column in table.columns.values() if _may_hold_part(column)}
    columns |= list_document_columns(catalogue, table, FIRST_ROWS)
    found, matched = _learn_from(catalogue, table, columns, by_token, most)
    # Templates of one shape may differ in what an owner's row says.
    is_simple = len({template.shape for template in found}) == len(found)
    is_simple &= 10 * sum(template.pairs for template in found) >= 9 * matched
    if is_simple or matched < LEAST_PAIRS or not (owners := list_owner_columns(catalogue, table)):
        return found
    more, _ = _learn_from(catalogue, table, columns | owners, by_token, most)
    return max(found, more, key=_weigh)


def _weigh(templates: Sequence[Template]) -> int:
    """Return how well templates explain keys: few that explain many each are better than one for each folder."""
    return sum(template.pairs**2 for template in templates)


def _learn_from(
    catalogue: Catalogue,
    table: UserTable,
    columns: Mapping[str, Column],
    by_token: Mapping[str, Sequence[str]],
    most: int,
) -> tuple[list[Template], int]:
    """Return templates over some columns, and how many rows and keys were compared."""
    rows = _read_rows(catalogue, table, list(columns.values()), by_token, most)
    pairs: list[tuple[int, str]] = []
    for number, values in enumerate(rows):
        matched = dict.fromkeys(key for text in list_strong(values, columns) for key in by_token.get(text, ()))
        pairs += [(number, key) for key in matched]
    texts: dict[int, RowTexts] = {}
    compared = pairs[:: max(1, len(pairs) // MOST_PAIRS)]
    explained = [(number, texts.setdefault(number, RowTexts(rows[number], columns)).explain(key))
                 for number, key in compared]  # fmt: skip
    return learn(explained), len(compared)


def _may_hold_part(column: Column) -> bool:
    return not column.is_generated and (
        column.kind == "text" or column.type in {*NUMBERS, "uuid", "date"} or column.type.startswith("timestamp")
    )


def _read_rows(
    catalogue: Catalogue, table: UserTable, columns: Sequence[Column], by_token: Mapping[str, object], most: int
) -> list[Values]:
    """Return some rows, and those that keys name by a unique column."""
    names = [column.name for column in columns]
    read = [
        sql.SQL("left(({})::text, {})").format(_read_column(column), sql.Literal(LONGEST + 1)) for column in columns
    ]
    value = sql.SQL("json_build_array({})::text").format(sql.SQL(", ").join(read))
    found: list[Row] = []
    for name, *more in table.unique:
        if not more and (ids := _choose_ids(table.columns[name], by_token)):
            found += catalogue.find_rows(table, name, ids, value)
    found += catalogue.sample(table, value, sql.SQL("true"), most, named=table.plan_name)
    rows = [dict(zip(names, json.loads(row.value), strict=True)) for row in {row.id: row for row in found}.values()]
    return [{name: text for name, text in row.items() if text and len(text) <= LONGEST} for row in rows]


def _read_column(column: Column) -> sql.Composable:
    name = literal(column.written) if column.written else sql.SQL("e.{}").format(identifiers(column.name))
    return sql.SQL("{} at time zone 'UTC'").format(name) if "with time zone" in column.type else name


def _choose_ids(column: Column, tokens: Iterable[str]) -> list[str]:
    """Return the tokens that a unique column may hold."""
    if column.kind == "text":
        listed = list(tokens)
    elif column.type == "uuid":
        listed = [one for one in tokens if re.fullmatch(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", one)]
    else:
        most = {"smallint": 4, "integer": 9, "bigint": 18}.get(column.type, 0)
        listed = [one for one in tokens if one.isdigit() and len(one) <= most]
    return listed[:: max(1, len(listed) // MOST_LOOKED_UP)][:MOST_LOOKED_UP]


def _drop_worse(found: Sequence[tuple[UserTable, Fit]]) -> list[tuple[UserTable, Fit]]:
    """Return of each kind of keys the table that names most of them: ids of other tables are there by chance."""

    def rank(one: tuple[UserTable, Fit]) -> tuple[object, ...]:
        table, fit = one
        return (
            -round(fit.share, 1),
            _name_stem(table) not in fit.template.literals.lower(),
            -fit.measured.existing,
            -fit.template.pairs,
        )

    best: dict[str, tuple[UserTable, Fit]] = {}
    for one in sorted(found, key=rank):
        literals = one[1].template.literals
        if (known := best.setdefault(literals, one)) is not one and known[0] is one[0]:
            continue
    return list(best.values())
