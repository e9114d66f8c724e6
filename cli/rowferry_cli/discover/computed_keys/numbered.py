"""Learns from the numbers in keys alone: folders that hold one object, or some, for each number of an id. Pure."""

import re
from collections.abc import Iterator, Sequence

from rowferry_cli.discover.computed_keys.templates import Template
from rowferry_cli.discover.evidence.catalogue import UserTable
from rowferry_cli.discover.evidence.written_sql import quote_name

NUMBERS = ("smallint", "integer", "bigint")


def learn_from_numbers(table: UserTable, keys: Sequence[str]) -> Iterator[Template]:
    """Yield the folders that hold one object, or some, for each number of an id."""
    (first, *more) = table.id
    if more or table.columns[first].type not in NUMBERS:
        return
    groups: dict[tuple[str, str], set[str]] = {}
    for key in keys:
        segments = key.split("/")
        for number, segment in enumerate(segments):
            found = re.fullmatch(r"(\D*?)(\d+)(\D*)", segment)
            before, after = "/".join(segments[:number]), "/".join(segments[number + 1 :])
            if found and not re.search(r"\d", before + after):
                begin = f"{before}/{found[1]}" if before else found[1]
                groups.setdefault((begin, found[3] + (f"/{after}" if after else "")), set()).add(found[2])
    for (before, after), ids in groups.items():
        if len(ids) >= 3:
            yield Template(tuple(_write_segments(before, quote_name(first), after)), len(ids), is_of_numbers=True)


def _write_segments(before: str, column: str, after: str) -> Iterator[tuple[tuple[str, str], ...]]:
    *folders, begin = before.split("/")
    end, *rest = after.split("/")
    yield from ((("literal", name),) for name in folders)
    pieces = (("literal", begin), ("sql", f"{column}::text"), ("literal", end))
    yield tuple(piece for piece in pieces if piece[1])
    yield from ((("literal", name),) for name in rest)
