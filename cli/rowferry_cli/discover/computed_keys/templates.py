"""Learns how keys are made of a row's columns, from rows and keys that share an id, a digest or a name. Pure.

A key is explained by its segments, each by every way in which the row could yield it; what explains all pairs of rows
and keys is the template.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from rowferry_cli.discover.evidence.catalogue import Column
from rowferry_cli.discover.evidence.written_sql import quote_name, quote_text

LEAST_PAIRS = 3
"""Rows and keys that a template must explain."""
STRONG = 6
"""Characters of a value that names a row by itself."""
MOST_SHARED = 12
"""Keys that hold what names a row: its object and smaller versions."""
MOST_SLICED = 12
"""Characters of a value from which slices are taken."""
MOST_WAYS = 24
"""In which one segment is explained."""

_INNERMOST = re.compile(r"""(?:\w+\()*(\(select .*? = e\.(?:"[^"]*"|\w+)\)|"(?:[^"]|"")+"|\w+)""")

Piece = tuple[str, str]
"""`literal` and a text, or `sql` and an expression over the row."""
Ways = frozenset[tuple[Piece, ...]]
"""In how many ways a row yields one segment."""
Values = Mapping[str, str]
"""The row's columns that are not null, as text."""


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


@dataclass(frozen=True, slots=True)
class _Base:
    """A text that a row yields, of which a key may hold the whole or slices."""

    text: str
    sql: str
    is_plain: bool


def list_strong(values: Values, columns: Mapping[str, Column]) -> set[str]:
    """Return the texts of a row by which one of its keys is known."""
    return {base.text for name, value in values.items() for base in _list_bases(columns[name], value)
            if len(base.text) >= STRONG and not re.fullmatch(r"0+\d{0,2}", base.text)}  # fmt: skip


def list_tokens(key: str) -> Iterator[str]:
    """Yield the parts of a key that could be a row's strong text: segments, parts of them, and adjacent ones joined."""
    segments = key.split("/")
    for first in range(len(segments)):
        for last in range(first + 1, min(first + 6, len(segments)) + 1):
            yield "".join(segments[first:last])
            if last > first + 1:
                yield "/".join(segments[first:last])
    for segment in segments:
        stem, _, _ = segment.rpartition(".")
        yield from (part for part in (stem, *re.split(r"[_.]|__", segment), *re.split(r"[-_.]", segment)) if part)
        for found in re.finditer(r"[_-]", segment):
            yield segment[found.end() :]


def _list_bases(column: Column, value: str) -> Iterator[_Base]:
    name = column.sql
    text = name if column.kind == "text" else f"{name}::text"
    yield _Base(value, text, is_plain=True)
    if column.type.startswith("timestamp") or column.type == "date":
        return
    if value != value.lower():
        yield _Base(value.lower(), f"lower({text})", is_plain=True)
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
        yield _Base(value.replace("-", ""), f"replace({text}, '-', '')", is_plain=True)
    if "/" in value:
        yield _Base(value.replace("/", "-"), f"replace({text}, '/', '-')", is_plain=True)
    if value.isdigit():
        yield _Base(value[::-1], f"reverse({text})", is_plain=False)
        for width in (9, 12):
            if len(value) < width:
                yield _Base(value.zfill(width), f"lpad({text}, {width}, '0')", is_plain=False)
    stem, dot, ending = value.rpartition(".")
    if dot and 0 < len(ending) <= 8 and stem:
        yield _Base(stem, f"regexp_replace({text}, '\\.[^.]*$', '')", is_plain=True)
        yield _Base(ending, f"substring({text} from '[^.]*$')", is_plain=True)
    if part := re.search("[:/]([^:/]+)$", value):
        yield _Base(part[1], f"substring({text} from '[^:/]*$')", is_plain=True)
    digested = value.encode()
    yield _Base(hashlib.md5(digested, usedforsecurity=False).hexdigest(), f"md5({text})", is_plain=False)
    digest = f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"
    yield _Base(hashlib.sha256(digested).hexdigest(), digest, is_plain=False)


class RowTexts:
    """What one row yields for keys."""

    def __init__(self, values: Values, columns: Mapping[str, Column]) -> None:
        """Take the columns that are not null."""
        self._whole: dict[str, list[str]] = {}
        self._slices: dict[str, list[str]] = {}
        for name, value in values.items():
            if columns[name].type.startswith("timestamp") or columns[name].type == "date":
                self._add_time(columns[name], value)
                continue
            for base in _list_bases(columns[name], value):
                if base.is_plain or len(base.text) >= STRONG:
                    self._whole.setdefault(base.text, []).append(base.sql)
                if len(base.text) >= 4:
                    self._add_slices(base)

    def _add_time(self, column: Column, value: str) -> None:
        time = column.sql
        if "with time zone" in column.type:
            time = f"({time} at time zone 'UTC')"
        for form, text in (("YYYY", value[:4]), ("MM", value[5:7]), ("DD", value[8:10]), ("YYYY-MM-DD", value[:10]),
                           ("YYYYMMDD", value[:10].replace("-", ""))):  # fmt: skip
            self._whole.setdefault(text, []).append(f"to_char({time}, '{form}')")

    def _add_slices(self, base: _Base) -> None:
        for begin in range(min(MOST_SLICED, len(base.text))):
            for length in (1, 2, 3, 4):
                if begin + length <= len(base.text):
                    text = f"substr({base.sql}, {begin + 1}, {length})"
                    self._slices.setdefault(base.text[begin : begin + length], []).append(text)
            if begin and len(base.text) - begin >= 4:
                self._slices.setdefault(base.text[begin:], []).append(f"substr({base.sql}, {begin + 1})")

    def explain(self, key: str) -> list[Ways]:
        """Return the ways in which each segment of a key can be made."""
        return [self._explain(segment) for segment in self._split(key)]

    def _split(self, key: str) -> list[str]:
        """Return the segments; a value that has slashes itself is one."""
        longest = [text for text in self._whole if "/" in text and f"/{text}/" in f"/{key}/"]
        if not longest:
            return key.split("/")
        text = max(longest, key=len)
        before, _, after = f"/{key}/".partition(f"/{text}/")
        return [*(before[1:].split("/") if before else []), text, *(after[:-1].split("/") if after else [])]

    def _explain(self, segment: str) -> Ways:
        ways: set[tuple[Piece, ...]] = {(("literal", segment),)}
        ways |= {(("sql", text),) for text in self._whole.get(segment, ())}
        ways |= {(("sql", text),) for text in self._slices.get(segment, ())}
        if not self._whole.get(segment):
            ways |= set(self._take_apart(segment, 3))
        return frozenset(ways)

    def _take_apart(self, segment: str, depth: int) -> Iterator[tuple[Piece, ...]]:
        """Yield a segment as the longest value in it and what stands before and behind that."""
        found = max((text for text in self._whole if _stands_in(text, segment)), key=len, default=None)
        if found is None or not depth:
            yield (("literal", segment),) if segment else ()
            return
        if len(found) < STRONG:  # perhaps by chance
            yield (("literal", segment),)
        before, _, after = segment.partition(found)
        befores, afters = list(self._take_apart(before, depth - 1)), list(self._take_apart(after, depth - 1))
        for number, (one, text, other) in enumerate(product(befores, self._whole[found], afters)):
            if number >= MOST_WAYS:
                return
            yield (*one, ("sql", text), *other)


def _stands_in(text: str, segment: str) -> bool:
    """Return whether a value stands in a segment by itself, not as a part of a word or number."""
    if "/" in text or text not in segment:
        return False
    if len(text) >= STRONG:
        return True
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])", segment) is not None


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
    return [one for one in found if any(_names_row(piece) for segment in one.segments for piece in segment)]


def _names_row(piece: Piece) -> bool:
    """Return whether a piece is more than some characters of a value, or a time."""
    kind, text = piece
    return kind == "sql" and not re.fullmatch(
        r"substr\(.*, \d+, \d+\)|to_char\(.*|substring\(.* from '\[\^\.\]\*\$'\)", text
    )


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
        if found := re.fullmatch(r"substr\((.*), (\d+), (\d+)\)", chosen[-1][0][1] if chosen[-1] else ""):
            base, end = found[1], int(found[2]) + int(found[3])
    return Template(tuple(chosen), pairs)


def _begins_at(text: str) -> int:
    """Return where in its value a slice begins, from 1; 0: it is none."""
    found = re.fullmatch(r"substr\(.*?, (\d+)(, \d+)?\)", text)
    return int(found[1]) if found else 0


def _list_columns(way: Iterable[Piece]) -> list[str]:
    """Return the innermost names of the expressions of a way."""
    return [found[1] for kind, text in way if kind == "sql" and (found := _INNERMOST.match(text))]


def group_by_strong(keys: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the keys by the tokens of each that may name a row: long enough, and not those of a whole folder."""
    found: dict[str, list[str]] = {}
    for key in keys:
        for token in {token for token in list_tokens(key) if len(token) >= STRONG}:
            found.setdefault(token, []).append(key)
    return {token: of_token for token, of_token in found.items() if len(of_token) <= MOST_SHARED}
