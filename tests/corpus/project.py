"""What a test has to know of an application: the rows and objects that it makes, and where it looks for an object."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from rowferry.plan import SideName

Columns = dict[str, Any]
FOLDER = Path(__file__).parent


@dataclass(slots=True)
class Row:
    """One row as the application writes it, in the legacy form."""

    table: str
    columns: Columns
    objects: Mapping[str, str] = field(default_factory=dict[str, str])
    """The legacy key of each of its objects, by the object's role: `original`, `small`."""
    overwrites: bool = False
    """Whether objects that exist already get new contents."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the application looks for an object."""

    side: SideName
    key: str


class Project:
    """One application. A subclass is all that differs from one to the next."""

    name: ClassVar[str]
    """Its folder, which holds `schema.sql` and `rowferry.toml`."""
    ids: ClassVar[Mapping[str, tuple[str, ...]]]
    """The columns that name a row, by table."""
    staying: ClassVar[frozenset[str]] = frozenset()
    """Tables whose rows are never rewritten: the application reads the other bucket once it is told to."""
    switched: bool = False
    """Whether it has been told to."""
    read_by_where: ClassVar[tuple[str, ...]] = ()
    """Other tables that the plan's conditions read, for which a role needs a grant of its own."""

    def prepare(self) -> Iterator[Row]:
        """Yield rows without objects that must be there first."""
        yield from ()

    def upload(self, number: int) -> list[Row]:
        """Return what one upload of a user makes, in the order of its rows."""
        raise NotImplementedError

    def replace(self, row: Row, number: int) -> Row | None:
        """Return the row with another file in the place of its own; None where the application never does that."""
        raise NotImplementedError

    def edit(self, row: Row, number: int) -> Columns:
        """Return what the application changes of a row without touching its file."""
        raise NotImplementedError

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        """Return where the application looks for the objects of a row, by their roles."""
        raise NotImplementedError

    def moved(self, table: str, columns: Columns) -> Columns:
        """Return the columns of a row, given those of the legacy form, once its objects are at the other side."""
        return columns

    def unrelated(self) -> Mapping[str, str]:
        """Return production keys by legacy keys of objects that no row names."""
        return {}

    @property
    def side(self) -> SideName:
        """The side that the application reads where its rows do not tell."""
        return "production" if self.switched else "legacy"

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    def id_of(self, table: str, columns: Columns) -> str:
        """Return a name for a row."""
        return " ".join([table, *(str(columns[column]) for column in self.ids[table])])


def touch() -> Columns:
    """Return what Rails sets at each update: the time in UTC, without saying so."""
    return {"updated_at": datetime.now(UTC).replace(tzinfo=None).isoformat()}


def hash_of(number: int, length: int) -> str:
    """Return hexadecimal digits that are always the same for a number."""
    return f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3A27251:064x}"[-length:]
