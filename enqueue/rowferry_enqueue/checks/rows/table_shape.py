"""Decides from the catalogue whether the tables of a plan are fit for a migration. Pure: no queries."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from rowferry.db.description import Description
from rowferry.db.entries import fits, name_kind
from rowferry.db.row_security import REMEDY, find_withheld
from rowferry.plan import Entries
from rowferry.plan.path import are_apart, is_of_elements, parse_path
from rowferry_enqueue.checks.finding import Finding, note, problem

GRANTS = "see `rowferry init --grants`"

_NO_TABLES = {
    "v": ("is a view", "name the table behind it, with a `where` if need be"),
    "m": ("is a materialized view", "name the table that it is made from"),
    "f": ("is a foreign table", "run rowferry in the database that holds its rows"),
}
"""What else may have rows, by pg_class.relkind, and what to do."""

Described = tuple[Entries, Description]


def judge_table(entries: Entries, described: Description) -> Iterator[Finding]:
    """Yield what is wrong with a table."""
    table = entries.table
    if described.table_number is None:
        yield problem(f"there is no table {table} in this database", "correct `table` in the plan, or its search_path")
        return
    if described.kind not in {"r", "p"}:
        what, remedy = _NO_TABLES.get(described.kind or "", ("is no table", "correct `table` in the plan"))
        yield problem(f"{table} {what}", remedy)
        return
    yield from _judge_id(entries, described)
    yield from _judge_key(entries, described)
    if described.has_children and "tableoid" not in (entries.where or ""):
        remedy = (
            "name each of them in [[entries]] of its own, "
            f"and for the rows of {table} itself add `where = \"tableoid = '{table}'::regclass\"`"
        )
        yield problem(f"other tables inherit from {table}, and their ids may repeat", remedy)
    if described.has_update_rule:
        yield problem(f"a rule rewrites every UPDATE of {table}", "drop the rule, or make it a trigger")
    if not described.missing and not described.may_select:
        *others, last = entries.columns
        yield problem(f"this role may not select {', '.join(others)} and {last} of {table}", GRANTS)
    if (hidden := find_withheld(entries, described, update=False)) is not None:
        yield problem(hidden, REMEDY)


def _judge_id(entries: Entries, described: Description) -> Iterator[Finding]:
    what = name_id(entries)
    if missing := list(_find_missing(entries, "id", zip(entries.ids, described.id_types, strict=True))):
        yield missing[0]
        return
    for column, id_type in zip(entries.ids, described.id_types, strict=True):
        if (id_type or "").endswith("[]"):
            yield problem(f"{entries.table}.{column} is an array", "name a column of single values")
    if not (described.id_unique or described.id_unique_by_partition):
        index = ", or make a unique index over this alone, without a condition" if isinstance(entries.id, str) else ""
        yield problem(f"{what} is not unique", f"name the columns of the primary key{index}")
    if not described.id_not_null and entries.rows == "move":
        yield problem(f"{what} may be null", "name a column that is `not null`")
    if described.id_is_generated:
        yield problem(f"{what} is generated from other columns", "name an ordinary column, whose values stay")


def _find_missing(entries: Entries, field: str, columns: Iterable[tuple[str, str | None]]) -> Iterator[Finding]:
    """Yield the columns of one field of the plan that have no type, since they are not there."""
    for column, its_type in columns:
        if its_type is None:
            yield problem(f"{entries.table} has no column {column}", f"correct `{field}` in the plan")


def name_id(entries: Entries) -> str:
    """Return the id of entries, for messages."""
    return f"{entries.table}.{entries.id}" if isinstance(entries.id, str) else f"{entries.table} by {entries.id_words}"


def _judge_key(entries: Entries, described: Description) -> Iterator[Finding]:
    if described.key_type is None:
        yield from _find_missing(entries, "key", [(entries.key, None)])
        return
    yield from _find_missing(entries, "moved", zip(entries.moved, described.state_types, strict=True))
    if entries.changed and described.changed_type is None:
        yield from _find_missing(entries, "changed", [(entries.changed, None)])
    elif entries.changed and described.changed_kind == "other":
        what = f"{entries.table}.{entries.changed} is {described.changed_type}, which is no time of a change"
        yield problem(what, "name a timestamp, a date or a whole number of seconds in `changed`, or leave it out")
    if not fits(entries, described):
        documents = {"json", "jsonb", "array"}
        remedy = (
            "say by `path` where in it the key stands"
            if entries.path is None and described.key_kind in documents
            else "name a column that holds the whole key"
        )
        yield problem(f"{entries.table}.{entries.key} is {described.key_type}, not {name_kind(entries)}", remedy)
    elif described.key_kind == "array" and not is_of_elements(entries.path):
        what = f"{entries.table}.{entries.key} is an array of texts, and `path` leads to none of its elements"
        yield problem(what, "write `$[*]` for all of them, or `$[0]` for the first")
    for column in described.generated:
        remedy = (
            "name the column that it is generated from, with a `path` where that is a document"
            if column == entries.key
            else "name in `moved` the columns that it is generated from"
        )
        yield problem(f"{entries.table}.{column} is generated from other columns, so it cannot be rewritten", remedy)


def judge_together(tables: Sequence[Described]) -> Iterator[Finding]:
    """Yield the columns that two [[entries]] would rewrite in the same rows."""
    for (one, found), (other, other_found) in combinations(tables, 2):
        if not share_rows(found, other_found) or _have_states_apart(one, other):
            continue
        if None not in {one.key_column, other.key_column} and one.key == other.key and not _are_apart(one, other):
            what = f"{one.label} and {other.label} name the same rows and the same column"
            yield problem(what, "leave one of them out of the plan, or give each a `from` and a `to` of its own")
        elif one.key_column != other.key_column or one.path != other.path or one.key_column is None:
            for column in (column for column in one.moved if column in other.moved):
                what = (
                    f"{one.label} and {other.label} both set {column}, which would say of the objects of one that they "
                    "have moved with those of the other"
                )
                yield problem(what, "name all objects of a row in the `objects` of one [[entries]]")


def share_rows(one: Description, other: Description) -> bool:
    """Return whether two tables are one, or one is a partition of the other."""
    if one.table_number is None or other.table_number is None:
        return False
    return one.table_number in {other.table_number, *other.ancestors} or other.table_number in one.ancestors


def _have_states_apart(one: Entries, other: Entries) -> bool:
    """Return whether a column of both `moved` tells their rows apart, whatever has moved."""
    return any(not {*one.moved[column]} & {*other.moved[column]} for column in one.moved if column in other.moved)


def _are_apart(one: Entries, other: Entries) -> bool:
    """Return whether no text of a column can be an entry of both: other places, or neither prefix begins another."""
    if one.path is not None and other.path is not None and are_apart(parse_path(one.path), parse_path(other.path)):
        return True
    prefixes = [(each.legacy_prefix, each.production_prefix) for each in (one, other)]
    return not any(a.startswith(b) or b.startswith(a) for a in prefixes[0] for b in prefixes[1])


def note_peculiarities(entries: Entries, described: Description) -> Iterator[Finding]:
    """Yield notes about a table that is fit."""
    if described.id_unique_by_partition and not described.id_unique:
        what = f"{entries.table} is partitioned, so no index makes {entries.id_words} unique by itself"
        yield note(
            what, f"make sure that {entries.id_words} is unique across partitions, as from one sequence or as a uuid"
        )
    if not described.id_in_order:
        what = f"no index of {entries.table} begins with {entries.id_words}, so each batch reads the whole table"
        remedy = "make one" if isinstance(entries.id, str) else "name the columns of `id` in the order of an index"
        yield note(what, remedy)
