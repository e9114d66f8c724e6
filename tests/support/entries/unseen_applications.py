"""Tables and objects of applications that --discover was not made for: tests/corpus/applications."""

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.plan import Plan
from rowferry.plan_file import parse_plan
from support.entries.discovering import Discovering

FOLDER = Path(__file__).parent.parent.parent / "corpus" / "applications"
NAMES = sorted(path.stem for path in FOLDER.glob("*.sql"))


class UnseenApplication:
    """One application's rows, in a database, and its objects, in a legacy bucket."""

    def __init__(self, name: str, found: Discovering) -> None:
        self._found, self._folder, self._name = found, FOLDER, name
        tables, _, keys = self._read("sql").partition("-- keys\n")
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("set search_path = public")
            connection.execute(tables.encode())
            connection.execute("analyze")
            self.keys = {key for (key,) in connection.execute(keys.encode())}
        found.put(*sorted(self.keys))

    def _read(self, ending: str) -> str:
        text = (self._folder / f"{self._name}.{ending}").read_text()
        bucket = self._found.legacy.bucket
        return text.replace("{url}", self._found.url_of(bucket)).replace("{bucket}", bucket)

    def complete_plan(self) -> None:
        """Name the test's own production bucket in the plan that was written."""
        text, bucket = self._found.plan_path.read_text(), self._found.production.bucket
        self._found.plan_path.write_text(text.replace('bucket = "new-media"', f'bucket = "{bucket}"'))

    def read_discovered(self) -> Plan:
        """Return the plan that was written."""
        return parse_plan(tomllib.loads(self._found.plan_path.read_text()), "as written")

    def read_by_hand(self) -> Plan:
        """Return the plan that was written by hand."""
        sides = {side: {"bucket": side} for side in ("legacy", "production")}
        document: dict[str, Any] = {"migration": {"name": "by-hand"}, **sides, **tomllib.loads(self._read("toml"))}
        return parse_plan(document, "by hand")

    def list_objects(self, plan: Plan) -> set[str]:
        """Return the objects of the application that a plan copies."""
        prefixes = tuple(each.prefix for each in plan.objects)
        return (self.list_keys(plan) & self.keys) | {key for key in self.keys if prefixes and key.startswith(prefixes)}

    def list_keys(self, plan: Plan) -> set[str]:
        """Return the keys that rows name by a plan's [[entries]], of objects that may not exist as well."""
        with patch.dict(os.environ, DATABASE_URL=self._found.dsn), connect("test", autocommit=True) as connection:
            return {
                key for entries in plan.entries for key in _list_keys(EntryQueries.of(connection, entries), connection)
            }


def _list_keys(queries: EntryQueries, connection: psycopg.Connection[Any]) -> Iterable[str]:
    for row in connection.execute(queries.compose("legacy_keys"), queries.parameters()):
        yield row["legacy_key"]
