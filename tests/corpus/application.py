"""An application of the corpus at work: it writes rows and objects in their legacy form, and knows of no migration."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import Event
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from corpus.project import Columns, Project, Row
from support.entries.files import wait_for_next_second
from support.processes.processes import meanwhile
from support.s3.objects import ObjectSide
from torture.oracle import Oracle

LONGEST_PAUSE = timedelta(seconds=0.05)
KEPT_UPLOADS = 3
"""The first uploads are never deleted, so that a pass has something to look at however long it waits for its turn."""


class Application:
    """What it has written, and one thread that goes on writing; tells the oracle of each object beforehand."""

    def __init__(self, dsn: str, project: Project, legacy: ObjectSide, oracle: Oracle) -> None:
        """`legacy`: where it stores objects; once it is switched, it does so in `production`."""
        self.project, self._oracle = project, oracle
        self._legacy, self.production = legacy, legacy
        self._connection = connect_as_application(dsn)
        self._chance = random.Random(7)
        self.rows: dict[str, Row] = {}
        """Each row that is there, as it would be without a migration."""
        self.uploads: dict[int, list[str]] = {}
        """The names of the rows of each upload."""
        self.bodies: dict[str, bytes] = {}
        """What each legacy object holds."""
        self.newer: dict[str, bytes] = {}
        """What it has stored in the production bucket."""
        self._overwritten: set[str] = set()
        """The names of rows whose objects were overwritten in place."""
        self.done: Counter[str] = Counter()
        self.number = 0
        """Of the last upload."""

    def close(self) -> None:
        self._connection.close()

    def fill(self, uploads: int) -> None:
        """Make what is there before the migration."""
        for row in self.project.prepare():
            self._insert(row)
        for key in self.project.unrelated():
            self._put("", key)
        for _ in range(uploads):
            self.upload()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Go on writing until the block ends. Raises what the application has met."""

        def write(ended: Event) -> None:
            while not ended.wait(self._chance.uniform(0, LONGEST_PAUSE.total_seconds())):
                self._chance.choice([self.upload, self.replace, self.edit, self.edit, self.delete])()

        with meanwhile(write):
            yield

    # What it does

    def upload(self) -> None:
        """Store the objects of some rows, and then the rows."""
        self.number += 1
        self.uploads[self.number] = []
        for row in self.project.upload(self.number):
            self.uploads[self.number].append(self._insert(row))
        self.done["upload"] += 1

    def replace(self) -> None:
        """Store another file, and then update the row."""
        self._replace(self._choose())

    def overwrite_again(self) -> bool:
        """Overwrite what was overwritten before, in a later second: servers tell times in whole seconds.

        Returns whether there was anything.
        """
        if not self._overwritten:
            return False
        wait_for_next_second()
        for row_id in self._overwritten & self.rows.keys():
            self._replace(row_id)
        return True

    def _replace(self, row_id: str) -> None:
        row = self.rows[row_id]
        self.number += 1
        new = self.project.replace(row, self.number)
        if new is None:
            return
        for role, key in new.objects.items():
            self._oracle.allow(f"{row_id} {role}", self._body(key, again=new.overwrites))
        for key in new.objects.values():
            self._put(row.table, key, again=new.overwrites)
        self._update(row, new.columns)
        for role, key in new.objects.items():
            self._oracle.expect(f"{row_id} {role}", self._body(key))
        for role in row.objects.keys() - new.objects.keys():
            self._oracle.forget(f"{row_id} {role}")
        row.objects = new.objects
        if new.overwrites:
            self._overwritten.add(row_id)
        self.done["replace"] += 1

    def edit(self) -> None:
        """Change something else of a row."""
        row = self.rows[self._choose()]
        self._update(row, self.project.edit(row, self.number))
        self.done["edit"] += 1

    def delete(self) -> None:
        """Delete the rows of an upload, the last one first; at some later time something removes the objects."""
        number = self._chance.choice(list(self.uploads))
        if number <= KEPT_UPLOADS:
            return
        for row_id in reversed(self.uploads.pop(number)):
            row = self.rows[row_id]
            query = sql.SQL("delete from {} as t where {}").format(sql.Identifier(row.table), self._is(row))
            assert self._connection.execute(query).rowcount == 1, row_id
            for role in row.objects:
                self._oracle.forget(f"{row_id} {role}")
            del self.rows[row_id]
        self.done["delete"] += 1

    # How

    def _choose(self) -> str:
        return self._chance.choice([row_id for row_ids in self.uploads.values() for row_id in row_ids])

    def _insert(self, row: Row) -> str:
        """Insert a row after its objects, and return its name."""
        row_id = self.project.id_of(row.table, row.columns)
        for role, key in row.objects.items():
            self._oracle.expect(f"{row_id} {role}", self._put(row.table, key))
        query = "insert into {table} ({columns}) select {columns} from jsonb_populate_record(null::{table}, %s)"
        row.columns = self._write(row, query + " returning to_jsonb({table}.*)", row.columns)
        self.rows[row_id] = row
        return row_id

    def _update(self, row: Row, columns: Columns) -> None:
        query = "update {table} as t set ({columns}) = (select {columns} from jsonb_populate_record(null::{table}, %s))"
        found = self._write(row, query + " where {is} returning to_jsonb(t.*)", columns)
        row.columns = {**row.columns, **{name: found[name] for name in columns}}

    def _write(self, row: Row, query: str, columns: Columns) -> Columns:
        """Run a statement over one row, and return the row."""
        parts: dict[str, sql.Composable] = {
            "table": sql.Identifier(row.table),
            "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
            "is": self._is(row),
        }
        composed = sql.SQL(query).format(**parts)  # pyright: ignore[reportArgumentType]
        (found,) = self._connection.execute(composed, [Jsonb(columns)]).fetchall()
        return found[0]

    def _is(self, row: Row) -> sql.Composed:
        """Return the condition that a row `t` is this one."""
        ids = self.project.ids[row.table]
        return sql.SQL(" and ").join(
            sql.SQL("t.{}::text = {}").format(sql.Identifier(name), str(row.columns[name])) for name in ids
        )

    def _put(self, table: str, key: str, *, again: bool = False) -> bytes:
        """Store an object unless it is there, or again, and return what it holds."""
        body, is_there = self._body(key, again=again), self._find(key) is not None
        if again or not is_there:
            is_switched = self.project.switched and table in self.project.staying
            (self.production if is_switched else self._legacy).put(key, body)
            (self.newer if is_switched else self.bodies)[key] = body
        return body

    def _body(self, key: str, *, again: bool = False) -> bytes:
        """Return what an object holds, or is to hold with the next `_put`."""
        found = self._find(key)
        return f"{key}, written in {self.number}".encode() if again or found is None else found

    def _find(self, key: str) -> bytes | None:
        """Return what an object holds; None where there is none."""
        return self.newer.get(key, self.bodies.get(key))


def connect_as_application(dsn: str) -> psycopg.Connection[Any]:
    """Connect as frameworks do: times without a zone are those of UTC, whatever the database is set to."""
    # The path, because the tests' role has the name of our own schema.
    options = "-c timezone=UTC -c search_path=public"
    return psycopg.connect(dsn, autocommit=True, application_name="application", options=options)


def find_rows(connection: psycopg.Connection[Any], tables: Sequence[str]) -> Iterator[tuple[str, Columns]]:
    """Yield each row of these tables, as its application reads it."""
    for table in tables:
        for (columns,) in connection.execute(
            sql.SQL("select to_jsonb(t.*) from {} as t").format(sql.Identifier(table))
        ):
            yield table, columns
