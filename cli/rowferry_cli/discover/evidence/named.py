"""What texts of a column name: objects, or folders of them, in one place and under one reading. Pure."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from rowferry_cli.discover.evidence.catalogue import Column, UserTable
from rowferry_cli.discover.evidence.places import Placed, is_below, merge_paths
from rowferry_cli.discover.evidence.readings import Reading, first_folder

Rows = frozenset[int]
"""Numbers of sampled rows."""
LEAST_SHARE = 10
"""One in so many texts of a column must name an object, or it is a coincidence."""


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
        return _name_place(self.table, self.column, self.path)

    @property
    def texts(self) -> list[str]:
        """The texts alone."""
        return [text for _, text in self.placed]


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
    """Of existing objects."""
    example: str
    example_key: str
    missing: str | None
    """A text that names no object, or a folder without any."""
    signed_rows: Rows = frozenset()
    """Those with presigned URLs, if others are not; all, if every URL is."""
    is_within: bool = False
    """Whether the texts are URLs inside longer texts."""
    names_folders: bool = False
    """Whether the texts name folders; then `keys` are what the keys of their objects begin with, up to a slash."""

    @classmethod
    def of(
        cls,
        texts: ColumnTexts,
        reading: Reading,
        of_form: Sequence[Placed],
        keys: Mapping[str, str],
        existing: Container[str],
        **more: Any,
    ) -> Self:
        """Return what texts name: those `of_form` that a reading reads, at least one; `keys` by their texts.

        `existing`: the keys of objects, or of folders with objects, that are there.
        """
        there = [(row, text) for row, text in of_form if keys[text] in existing]
        missing = [(row, text) for row, text in of_form if keys[text] not in existing]
        _, example = there[0] if there else of_form[0]
        return cls(
            texts.table,
            texts.column,
            texts.path,
            reading,
            rows=frozenset(row for row, _ in of_form),
            existing_rows=frozenset(row for row, _ in there),
            prefixes=group_by_folder(there),
            missing_prefixes=group_by_folder(missing),
            keys=frozenset(keys[text] for _, text in there),
            example=example,
            example_key=keys[example],
            missing=missing[0][1] if missing else None,
            **more,
        )

    @property
    def sampled(self) -> int:
        """How many sampled rows have a text of this form."""
        return len(self.rows)

    @property
    def existing(self) -> int:
        """How many of them name an existing object."""
        return len(self.existing_rows)

    @property
    def is_chance(self) -> bool:
        """Whether so few name an object that it is a coincidence."""
        return self.existing * LEAST_SHARE < self.sampled

    @property
    def label(self) -> str:
        """The column, and the place in it."""
        return _name_place(self.table, self.column, self.path)


def _name_place(table: UserTable, column: Column, path: str | None) -> str:
    return f"{table.plan_name}.{column.name}{f' {path}' if path else ''}"


def group_by_folder(placed: Iterable[Placed]) -> Mapping[str, Rows]:
    found: dict[str, Rows] = defaultdict(frozenset)
    for row, text in placed:
        found[first_folder(text)] |= {row}
    return found


def merge_places(found: Sequence[Named], paths: Sequence[str]) -> list[Named]:
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
