"""A project of the corpus in a database and two buckets of a test: filled, migrated, and looked at in the end."""

import json
import os
import tomllib
from collections import Counter
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from corpus.application import Application, connect_as_application, find_rows
from corpus.auditor import Auditor
from corpus.project import Columns, Project
from rowferry.batch import Outcome
from rowferry_enqueue.enqueue import Enqueued
from support.entries.entry_table import Record
from support.entries.migration import Migration
from support.postgres.roles import Roles, grant, log_in
from support.s3.buckets import Buckets
from torture.oracle import Oracle

FAR_ZONE = "alter database {} set timezone = 'Asia/Tokyo'"
"""Nothing may depend on the database's own time zone: applications keep UTC."""
SETTLED = (Outcome.MIGRATED, Outcome.KEPT, Outcome.CHANGED, Outcome.DELETED)


class Corpus(Migration):
    """The schema and the plan of a project, with its application and an auditor."""

    _roles: Roles

    def __init__(self, dsn: str, legacy: Buckets, production: Buckets, folder: Path, *, project: Project) -> None:
        self.project = project
        super().__init__(dsn, legacy, production, folder)
        written = tomllib.loads((project.folder / "rowferry.toml").read_text())
        self.plan = {
            "migration": written["migration"],
            "legacy": self.plan["legacy"],
            "production": self.plan["production"],
            **{name: table for name, table in written.items() if isinstance(table, list)},
        }
        oracle = Oracle()
        self.application = Application(dsn, project, self.legacy, oracle)
        self.application.production = self.production
        self.auditor = Auditor(
            dsn,
            project,
            oracle,
            {"legacy": (legacy.server, self.legacy.bucket), "production": (production.server, self.production.bucket)},
        )

    def make_table(self, id_type: str) -> None:
        self.execute(sql.SQL(FAR_ZONE).format(sql.Identifier(str(conninfo_to_dict(self.dsn)["dbname"]))))
        self.execute("set search_path = public")  # the tests' role has the name of our own schema
        self.execute((self.project.folder / "schema.sql").read_text())

    def grant_minimum(self, roles: Roles) -> None:
        """Give each role what `rowferry init --grants` says, and from now on enqueue and work as these roles."""
        grant(self, roles)
        for table, role in product(self.project.read_by_where, ("enqueuer", "worker")):
            self.execute(sql.SQL("grant select on {} to {}").format(*map(sql.Identifier, (table, roles[role]))))
        self._roles = roles

    def enqueue(self, batch_size: int = 100, **request: Any) -> list[Enqueued]:
        with patch.dict(os.environ, DATABASE_URL=log_in(self, self._roles["enqueuer"])):
            return super().enqueue(batch_size, **request)

    def work(self, *queues: str, parallel: int = 16) -> dict[str, int]:
        with patch.dict(os.environ, DATABASE_URL=log_in(self, self._roles["worker"])):
            return super().work(*queues, parallel=parallel)

    def close(self) -> None:
        """Close all connections."""
        self.application.close()
        super().close()

    def expect_objects_of_all(self) -> None:
        """Check every object that the application knows of, now."""
        expected = {f"{row_id} {role}" for row_id, row in self.application.rows.items() for role in row.objects}
        assert self.auditor.check_all() == expected
        assert not self.auditor.violations

    def expect_rows(self, *, moved: bool) -> None:
        """Hold each row, all of its columns, against what the application has written."""
        found = {self.project.id_of(table, columns): columns for table, columns in self.find_rows()}
        assert found.keys() == self.application.rows.keys()
        for row_id, row in self.application.rows.items():
            wanted = self.project.moved(row.table, row.columns) if moved else row.columns
            assert canonical(found[row_id]) == canonical(wanted), row_id

    def expect_legacy_as_written(self) -> None:
        """Hold each legacy object against what the application has written."""
        assert self.legacy.listing().keys() == self.application.bodies.keys()
        for key, body in self.application.bodies.items():
            assert self.legacy.read(key) == body, key

    def expect_balance(self, queue: str = "migrate") -> Counter[Outcome]:
        """Return the entries of a queue by their outcomes, all of which must be settled."""
        self.check_balance()
        batches = [batch for batch in self.batches() if batch["queue_name"] == queue]
        assert {batch["status"] for batch in batches} == {"DONE"}, self.failures()
        counts = Counter({outcome: sum(batch[outcome] for batch in batches) for outcome in Outcome})
        assert sum(counts[outcome] for outcome in SETTLED) == sum(batch["entry_count"] for batch in batches)
        return +counts

    def find_rows(self) -> list[tuple[str, Columns]]:
        """Return each row with its table, as the database holds it."""
        with ExitStack() as until:
            connection = until.enter_context(connect_as_application(self.dsn))
            return list(find_rows(connection, list(self.project.ids)))


def canonical(columns: Record) -> dict[str, Any]:
    """Return a row with documents in text read: how they are written down means nothing."""
    return {name: read_json(value) for name, value in columns.items()}


def read_json(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    return json.loads(value)
