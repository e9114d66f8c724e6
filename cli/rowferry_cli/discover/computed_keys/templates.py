"""Learns how keys are made of a row's columns, from rows and keys that share an id, a digest or a name. Pure.

A key is explained by its segments, each by every way in which the row could yield it; what explains all pairs of rows
and keys is the template.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from rowferry_cli.discover.computed_keys.row_texts import STRONG, Piece, Ways
from rowferry_cli.discover.evidence.written_sql import quote_name, quote_text

LEAST_PAIRS = 3
"""Rows and keys that a template must explain."""

_SLICE = re.compile(r"substr\((.*), (\d+), (\d+)\)")
_INNERMOST = re.compile(r"""(?:\w+\()*(\(select .*? = e\.(?:"[^"]*"|\w+)\)|"(?:[^"]|"")+"|\w+)""")


@dataclass(frozen=True, slots=True)
class Template:
    """How keys are made of a row, segment by segment."""

    segments: tuple[tuple[Piece, ...], ...]
    pairs: int
    """Rows and keys that it explains."""
    is_of_numbers: bool = False
    """Whether it was learned from the numbers in keys alone."""

    @property
    def sql(self) -> str:
        """An expression that yields the key."""
        pieces: list[Piece] = []
        for number, segment in enumerate(self.segments):
            for kind, text in [*([("literal", "/")] if number else []), *segment]:
                if kind == "literal" and pieces and pieces[-1][0] == "literal":
                    pieces[-1] = ("literal", pieces[-1][1] + text)
                else:
                    pieces.append((kind, text))
        return " || ".join(quote_text(text) if kind == "literal" else text for kind, text in pieces)

    def has(self, words: str) -> bool:
        """Return whether SQL of the template has these words."""
        return any(kind == "sql" and words in text for segment in self.segments for kind, text in segment)

    def replace(self, words: str, others: str) -> Self:
        """Return the template with other words in its SQL."""
        segments = [
            tuple((kind, text.replace(words, others) if kind == "sql" else text) for kind, text in segment)
            for segment in self.segments
        ]
        return replace(self, segments=tuple(segments))

    @property
    def literals(self) -> str:
        """What is the same in every key."""
        return "/".join("".join(text for kind, text in segment if kind == "literal") for segment in self.segments)

    @property
    def shape(self) -> tuple[object, ...]:
        """What is of the row, and where, whatever the literals are."""
        return tuple(tuple(text if kind == "sql" else kind for kind, text in segment) for segment in self.segments)

    @property
    def folder(self) -> str:
        """What every key begins with, up to a slash."""
        names: list[str] = []
        for segment in self.segments[:-1]:
            if any(kind == "sql" for kind, _ in segment):
                break
            names.append("".join(text for _, text in segment))
        return "".join(f"{name}/" for name in names)

    def holds(self, column: str) -> bool:
        """Return whether a whole column is a segment, or several, of the key."""
        return any(segment == (("sql", quote_name(column)),) for segment in self.segments)

    def uses(self, column: str) -> bool:
        """Return whether the expression names a column."""
        name = re.escape(quote_name(column))
        return any(kind == "sql" and re.search(rf"(?<![\w\".]){name}(?![\w\"])", text)
                   for segment in self.segments for kind, text in segment)  # fmt: skip


def learn(explained: Iterable[tuple[int, Sequence[Ways]]]) -> list[Template]:
    """Return the templates that explain keys; each pair is the number of a row and the ways to make its key."""
    groups: list[tuple[set[int], list[Ways]]] = []
    for row, ways in explained:
        for rows, known in groups:
            shared = [one & other for one, other in zip(known, ways, strict=False)] if len(known) == len(ways) else []
            if shared and all(shared):
                rows.add(row)
                known[:] = shared
                break
        else:
            groups.append(({row}, list(ways)))
    found = [_choose(ways, len(rows)) for rows, ways in groups if len(rows) >= LEAST_PAIRS]
    return [
        one
        for one in found
        if _names_row([text for segment in one.segments for kind, text in segment if kind == "sql"])
    ]


def _names_row(pieces: Iterable[str]) -> bool:
    """Return whether pieces are more than some characters of a value, or a time."""
    sliced: Counter[str] = Counter()
    for text in pieces:
        if found := _SLICE.fullmatch(text):
            sliced[found[1]] += int(found[3])
        elif not re.fullmatch(r"to_char\(.*|substring\(.* from '\[\^\.\]\*\$'\)", text):
            return True
    return any(characters >= STRONG for characters in sliced.values())


def _choose(ways: Sequence[Ways], pairs: int) -> Template:
    """Return the likeliest way for each segment: a literal where all keys have it, then whole columns, then slices.

    Of several columns that would do, the one that most other segments are made of.
    """
    named = [name for segment in ways for name in {found for way in segment for found in _list_columns(way)}]

    def rank(way: tuple[Piece, ...]) -> tuple[object, ...]:
        goes_on = any(_begins_at(text) == end and text.startswith(f"substr({base},") for _, text in way)
        texts = [text for kind, text in way if kind == "sql"]
        sliced = sum(text.startswith("substr(") for text in texts)
        usual = -min((named.count(name) for name in _list_columns(way)), default=0)
        # A date, or the zeros before an id, are the same in all keys that were listed, but not in all that there are.
        is_number = any(text.isdigit() for kind, text in way if kind == "literal")
        is_chance = sliced and not any("lpad(" in text for text in texts)
        likely = (3 if is_chance else 1) if texts else (2 if is_number else 0)
        return (likely, sliced, not goes_on, usual, sum(map(len, texts)), way)

    base, end = "", 0
    chosen: list[tuple[Piece, ...]] = []
    for segment in ways:
        chosen.append(min(segment, key=rank))
        if found := _SLICE.fullmatch(chosen[-1][0][1] if chosen[-1] else ""):
            base, end = found[1], int(found[2]) + int(found[3])
    return Template(tuple(chosen), pairs)


def _begins_at(text: str) -> int:
    """Return where in its value a slice begins, from 1; 0: it is none."""
    found = re.fullmatch(r"substr\(.*?, (\d+)(, \d+)?\)", text)
    return int(found[1]) if found else 0


def _list_columns(way: Iterable[Piece]) -> list[str]:
    """Return the innermost names of the expressions of a way."""
    return [found[1] for kind, text in way if kind == "sql" and (found := _INNERMOST.match(text))]
