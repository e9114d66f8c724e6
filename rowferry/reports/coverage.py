"""Which part of the legacy bucket a plan covers: recorded by `check` and `migrate`, read by every screen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg.types.json import Jsonb

from rowferry.db.connection import Connection, call
from rowferry.db.statements import statement
from rowferry.formatting import count
from rowferry.reports.facts import NOT_RECORDED

LEAST_SHARE = 0.1
"""Of the objects of a folder: where fewer are named by nothing, they are what deleted rows have left."""
MOST_SHOWN = 6
RECORDED = ("folder", "objects", "unnamed", "is_complete", "is_exact")
NEXT = "Name these in the plan by [[objects]] or [[entries]], unless they may stay behind."


@dataclass(frozen=True, slots=True)
class FolderCoverage:
    """One folder of the legacy bucket, or several that were looked at as one."""

    folder: str
    objects: int
    unnamed: int
    """Of them, those that no row and no [[objects]] of the plan names."""
    is_complete: bool = True
    """False: there are at least so many objects."""
    is_exact: bool = True
    """False: `unnamed` is computed from a part of the keys."""
    prefix: str | None = field(default=None, compare=False)
    """What all its keys and no others begin with, where that is known."""
    is_beside: bool = field(default=False, compare=False)
    """Whether the unnamed ones lie in folders of their own below it, each beside an object that a row names."""

    @property
    def is_left(self) -> bool:
        """Whether more than leftovers stay behind."""
        return self.unnamed > 0 and self.unnamed >= LEAST_SHARE * self.objects

    def __str__(self) -> str:
        """Return how many objects of the folder stay behind."""
        number = _show(self.unnamed, is_complete=self.is_complete, is_exact=self.is_exact)
        return f"{self.folder or 'the whole bucket'}: {number}{f' of {self.objects:,}' * (self.unnamed < self.objects)}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """All folders of the legacy bucket that were seen; none: nobody has looked."""

    folders: Sequence[FolderCoverage] = ()

    @property
    def left(self) -> list[FolderCoverage]:
        """The folders that stay behind, in whole or in part; the largest first."""
        return sorted((one for one in self.folders if one.is_left), key=lambda one: (-one.unnamed, one.folder))

    def describe(self) -> str | None:
        """Return what stays behind, without a full stop; None where the plan covers the bucket, as far as was seen."""
        left = self.left
        if not left:
            return None
        more = [count(len(left) - MOST_SHOWN, "more folder", "more folders")] if len(left) > MOST_SHOWN else []
        return (
            f"the plan covers a part of the legacy bucket: no row and no [[objects]] names {self._count_left()}, in "
            f"{', '.join([*map(str, left[:MOST_SHOWN]), *more])}"
        )

    def summarise(self) -> str | None:
        """Return the same in a line, the most important first; None where the plan covers the bucket."""
        folders = ", ".join(one.folder or "the whole bucket" for one in self.left)
        return f"Stays behind: {self._count_left()}, in {folders}" if folders else None

    def _count_left(self) -> str:
        unnamed, objects = sum(one.unnamed for one in self.left), sum(one.objects for one in self.folders)
        is_complete = all(one.is_complete for one in self.folders)
        number = _show(unnamed, is_complete=is_complete, is_exact=all(one.is_exact for one in self.left))
        share = f" ({unnamed / objects:.0%})" if is_complete else ""
        return f"{number} of {'' if is_complete else 'at least '}{objects:,} objects{share}"

    def as_sentence(self) -> str | None:
        """Return the same as a sentence with the next step."""
        words = self.describe()
        return words and f"{words[:1].upper()}{words[1:]}. {NEXT}"

    def as_document(self) -> list[dict[str, Any]]:
        """Return the folders that stay behind as plain data, for JSON."""
        return [
            {
                "folder": one.folder,
                "objects": one.objects,
                "unnamed": one.unnamed,
                "complete": one.is_complete,
                "exact": one.is_exact,
            }
            for one in self.left
        ]


def _show(number: int, *, is_complete: bool, is_exact: bool) -> str:
    return f"{'at least ' if not is_complete else '' if is_exact else 'about '}{number:,}"


def record_coverage(connection: Connection, migration: str, coverage: Coverage) -> bool:
    """Record what was found in the place of what was known; return False where this role may not, or has no schema."""
    folders = [{name: getattr(one, name) for name in RECORDED} for one in coverage.folders]
    left_behind = sum(one.unnamed for one in coverage.left)
    try:
        with connection.transaction():
            call(connection, "record_coverage", migration, Jsonb(folders), left_behind)
    except NOT_RECORDED:
        return False
    return True


def read_coverage(connection: Connection, migration: str) -> Coverage:
    """Return what was recorded last; nothing where nobody has looked."""
    row = connection.execute(statement("read_coverage"), {"migration": migration}).fetchone()
    return Coverage(tuple(FolderCoverage(**folder) for folder in row["folders"]) if row else ())
