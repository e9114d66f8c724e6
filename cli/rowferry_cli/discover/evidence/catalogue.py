"""Reads the tables of the database and samples of their columns, in short read-only transactions."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from typing import Literal

from psycopg import errors, sql

from rowferry.db.connection import Connection, fetch_one, identifiers, literal, set_local, translated_errors
from rowferry.db.entries import split_table
from rowferry.db.statements import statement

STATEMENT_TIMEOUT = timedelta(seconds=5)
SCANNED_BLOCKS = 2000
"""The largest table that is read from its first row on: 16 MB."""
SAMPLED_BLOCKS = (200, 4000)
"""Blocks of a larger table that are read: 1.6 MB; and 32 MB where these held few texts of the column."""
MAX_STORED_BYTES = 20_000
"""Longer values, as stored, are not read: they are no keys, and cost a live server memory."""
SEED = 12
MAX_LIKELY = 100
"""Rows whose texts name the bucket that are read beside a sample, however rare they are."""
OWN_TABLES = (
    *("batch_attempt", "batch_queue", "batch_tally", "claim_key", "copied_object", "coverage", "entry_failure"),
    *("event", "fleet", "installation", "migration", "pass", "queue", "row_turn"),
    *("schema_migration", "server_fact", "upload", "upload_part", "worker"),
)
"""Of the schema rowferry, in which a role of that name keeps its other tables too."""
EVERY_ROW = sql.SQL("true")

Kind = Literal["text", "json", "array"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and which kind of texts it holds; None: no texts."""

    name: str
    type: str
    kind: Kind | None
    is_generated: bool


@dataclass(frozen=True)
class UserTable:
    """A table of the application."""

    schema: str
    name: str
    is_visible: bool
    """Whether the search path finds it by its bare name."""
    columns: dict[str, Column]
    unique: tuple[tuple[str, ...], ...] = field(default=())
    """The columns of each unique index that names every row, the primary key first."""

    @cached_property
    def plan_name(self) -> str:
        """The name as a plan writes it."""
        return ".".join(f'"{part}"' if "." in part or '"' in part else part for part in (self.schema, self.name))

    @property
    def id(self) -> tuple[str, ...]:
        """The columns of the id; empty where nothing names every row."""
        return self.unique[0] if self.unique else ()


@dataclass(frozen=True, slots=True)
class Row:
    """A sampled row: the texts of its id, and of its value."""

    id: tuple[str, ...]
    value: str


class Catalogue:
    """The tables of the database, and samples of them. Each statement is a read-only transaction of its own."""

    def __init__(self, connection: Connection) -> None:
        """Take a connection that is in autocommit."""
        self._connection = connection
        self.timed_out: list[str] = []
        """Columns that could not be read within the timeout, or whose table was locked."""
        self.rows = 0
        """Rows that were read."""

    @cached_property
    def tables(self) -> tuple[UserTable, ...]:
        """The tables that this role may read, in the order of their names."""
        with self._reading(), translated_errors():
            columns = self._connection.execute(
                statement("columns_of_database"), {"own_tables": list(OWN_TABLES)}
            ).fetchall()
            indexes = self._connection.execute(statement("list_unique_columns"), {}).fetchall()
        unique: dict[tuple[str, str], list[tuple[str, ...]]] = {}
        for row in indexes:
            unique.setdefault((row["schema_name"], row["table_name"]), []).append(tuple(row["columns"]))
        found: list[UserTable] = []
        for (schema, name), rows in groupby(columns, key=lambda row: (row["schema_name"], row["table_name"])):
            listed = list(rows)
            of_table = {
                row["column_name"]: Column(row["column_name"], row["type"], row["kind"], row["is_generated"])
                for row in listed
            }
            indexed = tuple(unique.get((schema, name), ()))
            found.append(UserTable(schema, name, listed[0]["is_visible"], of_table, indexed))
        return tuple(found)

    def find_table(self, name: str) -> UserTable | None:
        """Return the table that `schema.table` or `table` names; None where there is none."""
        parts = split_table(name)
        for table in self.tables:
            if (table.schema, table.name) == parts or (len(parts) == 1 and table.name == name and table.is_visible):
                return table
        return None

    def sample_column(
        self,
        table: UserTable,
        column: Column,
        most: int,
        condition: sql.Composable = EVERY_ROW,
        likely: Sequence[str] = (),
    ) -> list[Row]:
        """Return rows in which the column has a text, spread over the table.

        `likely`: patterns, as of LIKE, of texts that are wanted however rare they are.
        """
        name = sql.SQL("e.") + identifiers(column.name)
        value = sql.SQL("array_to_json({})::text").format(name) if column.kind == "array" else name + sql.SQL("::text")
        empty = sql.SQL(" and {} <> ''").format(name) if column.kind == "text" else sql.SQL("")
        where = sql.SQL("{name} is not null and pg_column_size({name}) < {most} and {condition}").format(
            name=name, most=MAX_STORED_BYTES, condition=condition
        )
        named, where = f"{table.plan_name}.{column.name}", where + empty
        found = self.sample(table, value, where, most, named=named)
        if len(found) < most or not likely:
            return found
        patterns = literal(sql.Literal(list(likely)).as_string(None))
        is_likely = sql.SQL(" and {}::text like any({}::text [])").format(name, patterns)
        rare = self.sample(table, value, where + is_likely, MAX_LIKELY, named=named)
        return list({(row.id, row.value): row for row in [*found, *rare]}.values())

    def sample(
        self, table: UserTable, value: sql.Composable, where: sql.Composable, most: int, *, named: str
    ) -> list[Row]:
        """Return rows that meet a condition, each with the text that an expression over it yields."""
        try:
            with self._reading():
                return self._sample(table, value, where, most)
        except (errors.QueryCanceled, errors.LockNotAvailable):
            self.timed_out.append(named)
            return []
        except errors.Error as error:
            if isinstance(error, errors.OperationalError | errors.InterfaceError):
                with translated_errors():
                    raise
            return []  # an expression of a known schema that does not fit this version of it

    def _sample(self, table: UserTable, value: sql.Composable, where: sql.Composable, most: int) -> list[Row]:
        parts = {"id": self._id_texts(table), "value": value, "table": _name(table), "wanted": where}
        size = fetch_one(self._connection, statement("table_blocks"), {"table": _name(table).as_string()})["blocks"]
        found: list[Row] = []
        if size <= SCANNED_BLOCKS:
            total = fetch_one(self._connection, statement("count_rows", **parts))["rows"]
            return self._read(parts, "bernoulli", most, 120 * most / max(1, total)) if total else []
        for blocks in SAMPLED_BLOCKS:
            # Ten times as many rows as are wanted, so that they come from all of the blocks.
            found = self._read(parts, "system", 10 * most, 100 * blocks / size)
            if 10 * len(found) >= most:
                break
        step = max(1, len(found) // most)
        return found[::step][:most]

    def _read(self, parts: Mapping[str, sql.Composable], method: str, most: int, percent: float) -> list[Row]:
        query = statement("sample_rows", **parts, method=sql.Identifier(method))
        chosen = {"most": most, "percent": min(100.0, percent), "seed": SEED}
        rows = self._connection.execute(query, chosen).fetchall()
        self.rows += len(rows)
        return [Row(tuple(row["id"]), row["value"]) for row in rows if row["value"]]

    def find_rows(self, table: UserTable, id_column: str, ids: Sequence[str], value: sql.Composable) -> list[Row]:
        """Return what an expression yields for the rows with these ids; nothing where the texts are no such ids."""
        parts = {
            "id": self._id_texts(table),
            "value": value,
            "table": _name(table),
            "id_column": identifiers(id_column),
            "id_type": literal(table.columns[id_column].type),
        }
        try:
            with self._reading():
                rows = self._connection.execute(statement("find_by_ids", **parts), {"ids": list(ids)}).fetchall()
        except (errors.DataError, errors.QueryCanceled, errors.ProgrammingError):
            return []
        return [Row(tuple(row["id"]), row["value"]) for row in rows if row["value"]]

    def list_values(self, table: UserTable, column: str, most: int) -> list[str]:
        """Return the most common values of a column in some rows, the commonest first."""
        name = sql.SQL("e.{}::text").format(identifiers(column))
        found = self.sample(table, name, sql.SQL("true"), most, named=f"{table.plan_name}.{column}")
        return [value for value, _ in Counter(row.value for row in found).most_common(5)]

    @staticmethod
    def _id_texts(table: UserTable) -> sql.Composable:
        columns = [sql.SQL("e.{}::text").format(identifiers(name)) for name in table.id]
        return sql.SQL("array[{}]::text []").format(sql.SQL(", ").join(columns))

    @contextmanager
    def _reading(self) -> Generator[None]:
        """One transaction that cannot write and does not last."""
        with self._connection.transaction():
            set_local(self._connection, transaction_read_only="on", statement_timeout=STATEMENT_TIMEOUT)
            yield


def _name(table: UserTable) -> sql.Identifier:
    return identifiers(table.schema, table.name)
