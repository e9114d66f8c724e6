"""Patterns of keys that hold a row's id, as frameworks make them: a folder, the id, and the row's file name. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from rowferry_cli.discover.evidence.written_sql import quote_text

IdForm = Literal["plain", "partition"]

_PARTITION = re.compile(r"\d{3}(?:/\d{3}){2,}(?=/|$)")
_ID = re.compile(r"(\D*?)(\d+)(\D*)|(.*?)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(.*)")
_OF_ONE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-z])(?=[a-f]*\d)[0-9a-f]{16,}(?![0-9a-z])")
_NUMBER = re.compile(r"/\d+/")
FEW = 3
"""Rows: a number in the keys of fewer may be an id of something."""
_SMALLER = re.compile(r"thumb|tiny|small|preview|medium|large|resiz|variant|cache|crop|mini|card", re.IGNORECASE)
_ORIGINAL = frozenset({"/{value}", "/original/{value}"})
"""What follows the id in the key of the file itself: CarrierWave, Laravel's media library; Paperclip."""


class Pattern(NamedTuple):
    """How keys are made of a row."""

    before: str
    """What stands before the id."""
    form: IdForm
    after: str
    """What follows the id, with `{value}` for a file name and `{stem}` for one without its extension."""

    @property
    def is_smaller(self) -> bool:
        """Whether its words are those of a smaller version."""
        return _SMALLER.search(self.before + self.after) is not None

    def is_of_one(self, rows: int) -> bool:
        """Return whether its words are those of one row or owner: a digest, a uuid, or a number that few rows have."""
        words = self.before + self.after
        return _OF_ONE.search(words) is not None or (rows < FEW and _NUMBER.search(f"/{words}/") is not None)

    def write(self, row_id: str, value: str = "") -> str:
        """Return SQL that yields the key, given SQL of the id and of the file name."""
        stem = f"regexp_replace({value}, '\\.[^.]*$', '')"
        parts = [quote_text(self.before), f"{row_id}::text" if self.form == "plain" else write_partition(row_id)]
        named = {"{value}": value, "{stem}": stem}
        parts += [named.get(piece) or quote_text(piece) for piece in re.split(r"(\{value\}|\{stem\})", self.after)]
        return " || ".join(part for part in parts if part != "''")


Keys = Mapping[tuple[str, IdForm], Mapping[str, list[str]]]
"""What follows the id in keys, by what stands before it, and by the id."""


def group_by_id(keys: Iterable[str]) -> Keys:
    """Return the keys by each way to read them as something before an id, the id, and something behind it."""
    found: dict[tuple[str, IdForm], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in keys:
        for before, form, row_id, after in split_key(key):
            found[before, form][row_id].append(after)
    return found


def split_key(key: str) -> Iterator[tuple[str, IdForm, str, str]]:
    """Yield each way to read a key as something before an id, the id, and something behind it."""
    if partition := _PARTITION.search(key):
        row_id = partition[0].replace("/", "").lstrip("0") or "0"
        yield key[: partition.start()], "partition", row_id, key[partition.end() :]
        return
    segments = key.split("/")
    for number, segment in enumerate(segments):
        if found := _ID.fullmatch(segment):
            begin, row_id, end = found[1] or found[4] or "", found[2] or found[5], found[3] or found[6] or ""
            before = "".join(f"{name}/" for name in segments[:number])
            yield before + begin, "plain", row_id, end + "".join(f"/{name}" for name in segments[number + 1 :])


def list_constant(keys: Keys) -> Iterator[tuple[Pattern, set[str]]]:
    """Yield the patterns of keys that differ in the id alone, with the ids of at least three."""
    found: dict[Pattern, set[str]] = defaultdict(set)
    for (before, form), of_ids in keys.items():
        for row_id, afters in of_ids.items():
            for after in afters:
                if not re.search(r"\d", before + after):
                    found[Pattern(before, form, after)].add(row_id)
    yield from ((pattern, ids) for pattern, ids in found.items() if len(ids) >= 3)


def fit(after: str, name: str) -> str | None:
    """Return what follows the id, with the file name as `{value}` or `{stem}`; None where it has neither."""
    folder, slash, last = after.rpartition("/")
    if not name or not slash:
        return None
    if last == name or last.endswith(f"_{name}"):
        return f"{folder}/{last[: -len(name)]}{{value}}"
    stem, dot, _ = name.rpartition(".")
    if dot and stem and last.startswith((f"{stem}.", f"{stem}-")):
        return f"{folder}/{{stem}}{last[len(stem) :]}"
    return None


def rank(counts: Counter[Pattern]) -> list[Pattern]:
    """Return the patterns, that of the file itself first, then the commonest, without those of chance or of one row."""
    general = [one for one in counts if not one.is_of_one(counts[one])]
    ranked = sorted(general, key=lambda one: (one.after not in _ORIGINAL, one.is_smaller, -counts[one], one))
    return [one for one in ranked if counts[one] * 4 >= counts[ranked[0]]]


def write_partition(row_id: str) -> str:
    """Return SQL for Paperclip's id partition: 000/001/234, and groups of three of what is longer than nine digits.

    Source: kt-paperclip, lib/paperclip/interpolations.rb: nine digits below 10^9, else twelve at least; digits that
    fill no group of three are dropped.
    """
    digits = f"case when {row_id} < 1000000000 then 9 else greatest(12, length({row_id}::text)) end"
    padded = f"lpad({row_id}::text, {digits}, '0')"
    return f"rtrim(regexp_replace(regexp_replace({padded}, '^((...)*).*$', '\\1'), '(...)', '\\1/', 'g'), '/')"
