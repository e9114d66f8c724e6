"""The schemas that are known by name: small TOML files, ours in known/ and those of users."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from rowferry.errors import UsageError
from rowferry.formatting import suggest
from rowferry_cli.discover.evidence.catalogue import Catalogue, UserTable

FOLDER = Path(__file__).with_name("known")


class KnownEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """One [[entries]] of a known schema: what the plan shall say of it. What is left out is found by looking."""

    table: str
    key: str
    note: str = ""
    """What a reader of the plan should know."""
    needs: list[str] = []
    """Further columns that the table must have: versions of an application differ."""
    id: str | list[str] | None = None
    path: str | None = None
    where: str | None = None
    objects: str | None = None
    optional: str | None = None
    rewrites_urls: bool = False
    """Whether the column holds URLs that are rewritten, also where they do not name the bucket."""
    moved: dict[str, list[str | int | bool]] = {}
    """`{value}` in the place of the legacy value: the commonest one whose objects exist."""
    rows: str | None = None
    changed: str | None = None
    name: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns without which these entries are not in this database."""
        more = [self.changed] if self.changed else []
        return [self.key, *self.needs, *self.moved, *more]


class KnownSchema(Struct, frozen=True, forbid_unknown_fields=True):
    """A schema: how it is recognised, and what its plan says."""

    name: str
    title: str
    versions: str
    """Which versions of the application were looked at."""
    source: str
    """Where the application says how it names objects."""
    tables: dict[str, list[str]] = {}
    """Tables that the schema has, each with columns that tell it; empty: it is recognised only by `--for`."""
    note: str = ""
    """What to do in the application, in a sentence or two."""
    entries: list[KnownEntries] = []
    any_column: bool = field(default=False)
    """Whether columns that the schema does not name are looked at too: a library's schema is not the application's."""
    ignored: list[str] = []
    """Columns, as `table.column`, that name the objects of other entries once more."""
    objects: list[dict[str, str]] = []
    """[[objects]]: objects without rows, each with its `prefix`."""
    production: dict[str, Any] = {}
    """Further keys of [production]."""


def list_names() -> list[str]:
    """Return the names of the schemas in the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_known(name: str) -> KnownSchema:
    """Return the schema that a name or the path of a TOML file names. Raises UsageError, one sentence."""
    path = Path(name) if name.endswith(".toml") or "/" in name else FOLDER / f"{name}.toml"
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), KnownSchema)
    except FileNotFoundError:
        if path.parent != FOLDER:
            raise UsageError(f"There is no file {path}: --for takes a name or a TOML file.") from None
        known = ", ".join(list_names())
        near = suggest(name, list_names())
        raise UsageError(f"No schema {name!r} is known{near}: --for takes {known}, or a TOML file of yours.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The schema {path} cannot be read: {error}.") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"The schema {path} is not valid: {error}.") from error


def recognise(catalogue: Catalogue) -> list[KnownSchema]:
    """Return the schemas of the package that the database has."""
    found = (read_known(name) for name in list_names())
    return [known for known in found if known.tables and _has_tables(catalogue, known.tables)]


def _has_tables(catalogue: Catalogue, tables: Mapping[str, Sequence[str]]) -> bool:
    return all(
        (table := catalogue.find_table(name)) is not None and set(columns) <= set(table.columns)
        for name, columns in tables.items()
    )


def refuse_unknown(catalogue: Catalogue, fields: Sequence[str], known: KnownSchema | None) -> None:
    """Raise UsageError where the database lacks a column, `table.column`, or every table of a schema."""
    known_fields = [f"{table.name}.{column}" for table in catalogue.tables for column in table.columns]
    for field_name in fields:
        table_name, _, column = field_name.rpartition(".")
        table = catalogue.find_table(table_name) if table_name else None
        if table is None or column not in table.columns:
            what = f"This database has no column {field_name} that this role may read"
            raise UsageError(f"{what}: name columns as table.column{suggest(field_name, known_fields)}.")
    if known is None or known.any_column or fields or not known.entries or any(list_entries(catalogue, known)):
        return
    tables = ", ".join(dict.fromkeys(entries.table for entries in known.entries))
    raise UsageError(
        f"This database has no table of {known.title} ({tables}) that this role may read: see that DATABASE_URL is "
        f"that of {known.title}, or let --discover look at every column."
    )


def list_entries(catalogue: Catalogue, known: KnownSchema) -> Iterator[tuple[KnownEntries, UserTable]]:
    """Yield the entries of a schema that this database has the table and the columns for."""
    for entries in known.entries:
        table = catalogue.find_table(entries.table)
        if table is not None and set(entries.columns) <= set(table.columns):
            yield entries, table
