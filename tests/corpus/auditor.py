"""Reads rows and their objects as the application does, again and again: at every instant each must be there, right."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from threading import Event
from typing import Any

import psycopg
from psycopg import sql

from corpus.application import connect_as_application, find_rows
from corpus.project import Columns, Place, Project
from rowferry.plan import SideName
from rowferry_lab.servers.s3_servers import S3Server
from support.processes.processes import meanwhile
from torture.object_reader import ObjectReader
from torture.oracle import Oracle

MOST_LOOKS = 20
"""A row that is another one at each look is given up after so many: it never stood still for a violation."""


class Auditor:
    """Knows what each object must hold from the oracle, and where to look from the application's own code."""

    def __init__(
        self, dsn: str, project: Project, oracle: Oracle, servers: dict[SideName, tuple[S3Server, str]]
    ) -> None:
        """`servers`: the server and the bucket of each side."""
        self._dsn, self._project, self._oracle, self._servers = dsn, project, oracle, servers
        self.lost: set[str] = set()
        """Objects, by row and role, that somebody has deleted behind the application's back."""
        self.audits = 0
        """Objects that were read."""
        self.violations: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look on until the block ends, and raise what was seen."""
        before = self.audits

        def check_again(ended: Event) -> None:
            while not ended.wait(0.02):
                self.check_all()

        with meanwhile(check_again):
            yield
        assert self.audits > before, "the auditor was blind"
        assert not self.violations

    def check_all(self) -> set[str]:
        """Check every row once; return the names of all objects, `<row> <role>`."""
        seen: set[str] = set()
        with ExitStack() as until:
            connection = until.enter_context(connect_as_application(self._dsn))
            readers: dict[SideName, ObjectReader] = {side: until.enter_context(closing(ObjectReader(server)))
                       for side, (server, _) in self._servers.items()}  # fmt: skip
            for table, columns in find_rows(connection, list(self._project.ids)):
                row_id = self._project.id_of(table, columns)
                for role in self._project.places(table, columns):
                    seen.add(f"{row_id} {role}")
                    self._check(connection, readers, table, columns, role)
        return seen

    def _check(
        self, connection: psycopg.Connection[Any], readers: dict[SideName, ObjectReader], table: str, columns: Columns,
        role: str,
    ) -> None:  # fmt: skip
        """Hold an object against its row, which may move on meanwhile; so may the object."""
        name = f"{self._project.id_of(table, columns)} {role}"
        place = self._project.places(table, columns)[role]
        wrong: tuple[Place, bytes | None] | None = None
        for _ in range(MOST_LOOKS):
            found = readers[place.side].read(self._servers[place.side][1], place.key)
            self.audits += 1
            body = found and found.body
            if self._oracle.allows(name, body) or (body is None and name in self.lost):
                return
            if wrong == (place, body):
                self.violations.append(f"{name} is {body!r} at {place}")
                return
            wrong = (place, body)
            again = self._read_again(connection, table, columns)
            if again is None or role not in self._project.places(table, again):
                return  # deleted by the application, which the end shows
            place = self._project.places(table, again)[role]

    def _read_again(self, connection: psycopg.Connection[Any], table: str, columns: Columns) -> Columns | None:
        ids = self._project.ids[table]
        same = sql.SQL(" and ").join(
            sql.SQL("t.{}::text = {}").format(sql.Identifier(name), str(columns[name])) for name in ids
        )
        query = sql.SQL("select to_jsonb(t.*) from {} as t where {}").format(sql.Identifier(table), same)
        found = connection.execute(query).fetchone()
        return found and found[0]
