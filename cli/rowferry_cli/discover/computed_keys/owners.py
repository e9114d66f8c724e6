"""What keys may hold besides a row's own columns: columns of its owner, such as a tenant, and texts in documents."""

import re
from collections.abc import Iterator
from dataclasses import replace

from rowferry_cli.discover.evidence.catalogue import Catalogue, Column, UserTable
from rowferry_cli.discover.evidence.places import split_places
from rowferry_cli.discover.evidence.written_sql import quote_name

_PLAIN = re.compile(r"\$(?:\.[A-Za-z_]\w*){1,2}")

MOST_OWNERS = 4
"""Of one table."""
MOST_PLACES = 8
"""Of one document."""


def list_owner_columns(catalogue: Catalogue, table: UserTable) -> dict[str, Column]:
    """Return the columns of owners by the SQL that reads them for a row `e`, as a plan writes it."""
    found: dict[str, Column] = {}
    for reference, owner, owner_id in list(_list_owners(catalogue, table))[:MOST_OWNERS]:
        named = quote_name(owner.name)
        if not owner.is_visible:
            named = f"{quote_name(owner.schema)}.{named}"
        for column in owner.columns.values():
            if column.kind == "text" or column.type == "uuid":
                where = f"o.{quote_name(owner_id)} = e.{quote_name(reference)}"
                written = f"(select o.{quote_name(column.name)} from {named} as o where {where})"  # noqa: S608 - shown
                found[written] = replace(column, name=written, written=written)
    return found


def list_document_columns(catalogue: Catalogue, table: UserTable, most: int) -> dict[str, Column]:
    """Return the texts at fixed places of a table's documents by the SQL that reads them."""
    found: dict[str, Column] = {}
    for column in table.columns.values():
        if column.kind != "json" or column.is_generated:
            continue
        rows = catalogue.sample_column(table, column, most)
        places = [path for path in split_places([row.value for row in rows], "json") if path and _PLAIN.fullmatch(path)]
        for path in places[:MOST_PLACES]:
            *above, last = path.removeprefix("$.").split(".")
            steps = "".join(f" -> '{name}'" for name in above)
            written = f"({column.sql}{steps} ->> '{last}')"
            found[written] = Column(written, "text", "text", is_generated=False, written=written)
    return found


def _list_owners(catalogue: Catalogue, table: UserTable) -> Iterator[tuple[str, UserTable, str]]:
    """Yield the columns that name a row of another table, or another row of this one, by its id; with that id."""
    declared = catalogue.foreign_keys.get((table.schema, table.name), {})
    for column, (schema, name, owner_id) in declared.items():
        owners = [one for one in catalogue.tables if (one.schema, one.name) == (schema, name)]
        yield from ((column, owner, owner_id) for owner in owners if owner_id in owner.columns)
    for column in table.columns.values():
        stem = column.name.removesuffix("_id").removesuffix("Id").lower()
        if column.name in declared or stem == column.name.lower():
            continue
        for owner in catalogue.tables:
            is_named = owner.schema == table.schema and owner.name.lower() in {stem, f"{stem}s", f"{stem}es"}
            if is_named and len(owner.id) == 1 and owner.columns[owner.id[0]].type == column.type:
                yield column.name, owner, owner.id[0]
