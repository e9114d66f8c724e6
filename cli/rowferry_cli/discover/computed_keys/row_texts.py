"""What a row yields for its objects' keys: values, digests, slices, digits reversed. Pure."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from rowferry_cli.discover.evidence.catalogue import Column

STRONG = 6
"""Characters of a value that names a row by itself."""
MOST_SHARED = 12
"""Keys that hold what names a row: its object and smaller versions."""
MOST_SLICED = 12
"""Characters of a value from which slices are taken."""
SHA1 = "digest("
"""Of the extension pgcrypto."""
MOST_WAYS = 24
"""In which one segment is explained."""

Piece = tuple[str, str]
"""`literal` and a text, or `sql` and an expression over the row."""
Ways = frozenset[tuple[Piece, ...]]
"""In how many ways a row yields one segment."""
Values = Mapping[str, str]
"""The row's columns that are not null, as text."""


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
                yield "".join(reversed(segments[first:last]))
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
                padded = f"lpad({text}, {width}, '0')"
                yield _Base(value.zfill(width), padded, is_plain=False)
                yield _Base(value.zfill(width)[::-1], f"reverse({padded})", is_plain=False)
    stem, dot, ending = value.rpartition(".")
    if dot and 0 < len(ending) <= 8 and stem:
        yield _Base(stem, f"regexp_replace({text}, '\\.[^.]*$', '')", is_plain=True)
        yield _Base(ending, f"substring({text} from '[^.]*$')", is_plain=True)
    if part := re.search("[:/]([^:/]+)$", value):
        yield _Base(part[1], f"substring({text} from '[^:/]*$')", is_plain=True)
    yield from _list_digests(text, value.encode())


def _list_digests(text: str, value: bytes) -> Iterator[_Base]:
    sha256 = f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"
    yield _Base(hashlib.md5(value, usedforsecurity=False).hexdigest(), f"md5({text})", is_plain=False)
    yield _Base(hashlib.sha256(value).hexdigest(), sha256, is_plain=False)
    yield _Base(
        hashlib.sha1(value, usedforsecurity=False).hexdigest(), f"encode({SHA1}{text}, 'sha1'), 'hex')", is_plain=False
    )


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


def group_by_strong(keys: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the keys by the tokens of each that may name a row: long enough, and not those of a whole folder."""
    found: dict[str, list[str]] = {}
    for key in keys:
        for token in {token for token in list_tokens(key) if len(token) >= STRONG}:
            found.setdefault(token, []).append(key)
    return {token: of_token for token, of_token in found.items() if len(of_token) <= MOST_SHARED}
