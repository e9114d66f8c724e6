"""Finds out whether a column names existing objects: samples it, tries readings, and counts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from rowferry.formatting import count, show_text
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.catalogue import EVERY_ROW, Catalogue, Column, UserTable
from rowferry_cli.discover.evidence.embedded import list_embedded
from rowferry_cli.discover.evidence.places import Placed, is_below, merge_paths, split_places
from rowferry_cli.discover.evidence.readings import (
    Reading,
    first_folder,
    is_signed,
    may_be_key,
    mentions_bucket,
    suggest_readings,
    write_patterns,
)

Rows = frozenset[int]
"""Numbers of sampled rows."""
FIRST_FOLDERS = 6
"""Texts of a column that are looked up as folders."""
FIRST_KEYS = 8
"""Of a column that are tried under each reading; more, if one of them exists."""


@dataclass(frozen=True, slots=True)
class Named:
    """Texts of a column, in one place and under one reading, of which some name existing objects."""

    table: UserTable
    column: Column
    path: str | None
    reading: Reading
    rows: Rows
    """Those with a text of this form."""
    existing_rows: Rows
    """Those of which one names an existing object."""
    prefixes: Mapping[str, Rows]
    """The rows by the folders that texts which name objects begin with."""
    missing_prefixes: Mapping[str, Rows]
    """The same of texts that name none."""
    keys: frozenset[str]
    """Keys of existing objects."""
    example: str
    example_key: str
    missing: str | None
    """A text that names no object."""
    signed_rows: Rows = frozenset()
    """Those with presigned URLs, if others are not; all, if every URL is."""
    is_within: bool = False
    """Whether the texts are URLs inside longer texts."""

    @property
    def sampled(self) -> int:
        """How many sampled rows have a text of this form."""
        return len(self.rows)

    @property
    def existing(self) -> int:
        """How many of them name an existing object."""
        return len(self.existing_rows)

    @property
    def label(self) -> str:
        """The column, and the place in it."""
        return f"{self.table.plan_name}.{self.column.name}{f' {self.path}' if self.path else ''}"


@dataclass(frozen=True, slots=True)
class ColumnTexts:
    """The sampled texts of one place in a column."""

    table: UserTable
    column: Column
    path: str | None
    placed: tuple[Placed, ...]

    @property
    def label(self) -> str:
        """The column, and the place in it."""
        return f"{self.table.plan_name}.{self.column.name}{f' {self.path}' if self.path else ''}"

    @property
    def texts(self) -> list[str]:
        """The texts alone."""
        return [text for _, text in self.placed]


class Search:
    """Samples columns and tries their texts as keys."""

    def __init__(self, catalogue: Catalogue, bucket: LegacyBucket, *, sample: int) -> None:
        """Sample up to so many rows of each column."""
        self._catalogue, self._bucket, self._sample = catalogue, bucket, sample
        self._prefixes, self._patterns = bucket.list_prefixes(), write_patterns(bucket.side)
        self.unfound: list[ColumnTexts] = []
        """Places whose texts could be keys and name no object: parts of keys, perhaps."""
        self.beyond: list[tuple[ColumnTexts, str]] = []
        """Texts that name the bucket and are not proposed, with what is to say of them."""
        self.folders: set[str] = set()
        """Folders that texts name, which end with a slash."""

    def look_at(self, table: UserTable, column: Column, condition: sql.Composable = EVERY_ROW) -> list[Named]:
        """Return the forms in which a column's texts name objects, in rows that meet a condition."""
        rows = self._catalogue.sample_column(table, column, self._sample, condition, self._patterns)
        places = split_places([row.value for row in rows], column.kind or "text")
        found: list[Named] = []
        for path, placed in places.items():
            of_place = ColumnTexts(table, column, path, tuple(placed))
            self._note_bucket(of_place)
            if embedded := list_embedded(placed, self._bucket.side):
                found += self._look_within(of_place, embedded)
                longer = {row for row, _ in embedded}
                of_place = replace(of_place, placed=tuple(one for one in placed if one[0] not in longer))
            named = self._try(of_place)
            found += named
            if not named and self._name_folders(of_place):
                continue
            if not named and any(map(may_be_key, of_place.texts)):
                self.unfound.append(of_place)
        return _merge_places(found, [path for path in places if path is not None])

    def _look_within(self, texts: ColumnTexts, embedded: Sequence[Placed]) -> list[Named]:
        """Return the forms of URLs inside longer texts of a column; those in documents are only noted."""
        named = self._try(replace(texts, placed=tuple(embedded)))
        if texts.path is None and texts.column.kind == "text":
            return [replace(one, is_within=True) for one in named]
        rows = len({row for one in named for row in one.existing_rows})
        if rows:
            what = f"{count(rows, 'sampled row holds', 'sampled rows hold')} URLs of objects inside longer texts"
            self.beyond.append((texts, f"{what} of a document, which no plan can rewrite"))
        return []

    def _name_folders(self, texts: ColumnTexts) -> bool:
        """Note whether texts that name no object name folders of objects."""
        likely = [text for text in texts.texts if may_be_key(text) and "/" in text]
        known = {folder.rstrip("/") for folder in self._bucket.list_folder("")[0]}
        for reading in suggest_readings(likely, self._bucket.side, ()) if likely else ():
            read = dict.fromkeys(f"{key.strip('/')}/" for text in likely if (key := reading.read(text)))
            keys = [key for key in read if key.partition("/")[0] in known]
            if 2 * len(keys) < len({*likely}):
                continue
            tried = keys[:: max(1, len(keys) // FIRST_FOLDERS)][:FIRST_FOLDERS]
            found = [key for key in tried if any(self._bucket.list_folder(key))]
            if found and 2 * len(found) >= len(tried):
                self.folders.update(keys)
                what = f"the texts name folders, such as {show_text(found[0])!r}, and not each object in them"
                self.beyond.append((texts, f"{what}: [[objects]] copy such folders, and leave the rows"))
                return True
        return False

    def _note_bucket(self, texts: ColumnTexts) -> None:
        """Note a column of which some texts are the name of the bucket."""
        rows = len({row for row, text in texts.placed if text == self._bucket.side.bucket})
        if rows:
            what = f"{count(rows, 'sampled row holds', 'sampled rows hold')} the name of the legacy bucket"
            self.beyond.append((texts, f"{what}: change that when you switch the application"))

    def _try(self, texts: ColumnTexts) -> list[Named]:
        left = [(row, text) for row, text in texts.placed if may_be_key(text)]
        found: list[Named] = []
        if 10 * len(left) < len(texts.placed):
            left = [(row, text) for row, text in left if mentions_bucket(text, self._bucket.side)]
        for reading in self._choose_readings([text for _, text in left]) if left else ():
            of_form = [(row, text) for row, text in left if reading.read(text) is not None]
            if of_form:
                found.append(self._count(texts, reading, of_form))
                left = [(row, text) for row, text in left if reading.read(text) is None]
        return found

    def _choose_readings(self, texts: Sequence[str]) -> list[Reading]:
        """Return the readings under which texts name objects: for each prefix of texts the one that most do under."""
        hits: dict[Reading, int] = {}
        suggested = suggest_readings(texts, self._bucket.side, self._prefixes)
        keys = {reading: _pick_keys(reading, texts, FIRST_KEYS) for reading in suggested}
        existing = self._bucket.find(key for tried in keys.values() for key in tried)
        for reading, tried in keys.items():
            if any(key in existing for key in tried):
                hits[reading] = len(self._bucket.find(_pick_keys(reading, texts, 5 * FIRST_KEYS)))
        best: dict[str, Reading] = {}
        for reading in sorted(hits, key=lambda one: (-hits[one], suggested.index(one))):
            best.setdefault(reading.text_prefix, reading)
        # The longer prefix first: a text that has two is read by the longer one.
        return sorted(best.values(), key=lambda one: -len(one.text_prefix))

    def _count(self, texts: ColumnTexts, reading: Reading, of_form: Sequence[Placed]) -> Named:
        signed = frozenset(row for row, text in of_form if is_signed(text))
        of_form = [(row, text) for row, text in of_form if row not in signed] or of_form
        keys = {text: key for _, text in of_form if (key := reading.read(text)) is not None}
        existing = self._bucket.find(keys.values())
        there = [(row, text) for row, text in of_form if keys[text] in existing]
        missing = [(row, text) for row, text in of_form if keys[text] not in existing]
        _, example = there[0] if there else of_form[0]
        return Named(
            texts.table,
            texts.column,
            texts.path,
            reading,
            rows=frozenset(row for row, _ in of_form),
            existing_rows=frozenset(row for row, _ in there),
            prefixes=_group_by_folder(there),
            missing_prefixes=_group_by_folder(missing),
            keys=frozenset(keys[text] for _, text in there),
            example=example,
            example_key=keys[example],
            missing=missing[0][1] if missing else None,
            signed_rows=signed,
        )


def _group_by_folder(placed: Iterable[Placed]) -> Mapping[str, Rows]:
    found: dict[str, Rows] = defaultdict(frozenset)
    for row, text in placed:
        found[first_folder(text)] |= {row}
    return found


def _pick_keys(reading: Reading, texts: Sequence[str], most: int) -> list[str]:
    """Return different keys that texts name, from all over the sample."""
    keys = list(dict.fromkeys(key for text in texts if (key := reading.read(text)) is not None))
    return keys[:: max(1, len(keys) // most)][:most]


def _merge_places(found: Sequence[Named], paths: Sequence[str]) -> list[Named]:
    """Return what was found with one path for places that differ in one name, such as the sizes of an image."""
    merged: list[Named] = []
    for reading in dict.fromkeys(named.reading for named in found):
        of_form = {named.path: named for named in found if named.reading == reading}
        merged += [named for path, named in of_form.items() if path is None]
        for path in merge_paths([path for path in of_form if path is not None], paths):
            below = [named for named in of_form.values() if named.path is not None and is_below(named.path, path)]
            merged.append(
                replace(
                    below[0],
                    path=path,
                    rows=frozenset[int]().union(*(named.rows for named in below)),
                    existing_rows=frozenset[int]().union(*(named.existing_rows for named in below)),
                    prefixes=_merge_folders([named.prefixes for named in below]),
                    missing_prefixes=_merge_folders([named.missing_prefixes for named in below]),
                    keys=frozenset[str]().union(*(named.keys for named in below)),
                    signed_rows=frozenset[int]().union(*(named.signed_rows for named in below)),
                )
            )
    return merged


def _merge_folders(found: Sequence[Mapping[str, Rows]]) -> Mapping[str, Rows]:
    folders = dict.fromkeys(folder for one in found for folder in one)
    return {folder: frozenset[int]().union(*(one.get(folder, ()) for one in found)) for folder in folders}
