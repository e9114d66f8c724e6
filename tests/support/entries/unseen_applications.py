"""Tables and objects of applications that --discover was not made for: tests/corpus/applications."""

import os
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import psycopg

from rowferry.db.connection import connect
from rowferry.db.entries import EntryQueries
from rowferry.plan import Entries, Plan
from rowferry.plan_file import parse_plan
from support.entries.discovering import Discovering

FOLDER = Path(__file__).parent.parent.parent / "corpus" / "applications"
NAMES = sorted(path.stem for path in FOLDER.glob("*.sql"))


class UnseenApplication:
    """One application's rows, in a database, and its objects, in a legacy bucket."""

    def __init__(self, name: str, found: Discovering) -> None:
        self.name, self._found = name, found
        tables, _, keys = self._read("sql").partition("-- keys\n")
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("set search_path = public")
            connection.execute(tables.encode())
            connection.execute("analyze")
            self.keys = {key for (key,) in connection.execute(keys.encode())}
        found.put(*sorted(self.keys))

    def _read(self, ending: str) -> str:
        text = (FOLDER / f"{self.name}.{ending}").read_text()
        bucket = self._found.legacy.bucket
        text = text.replace("{production_url}", self._found.url_of(self._found.production.bucket))
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

    def list_spare(self, plan: Plan) -> set[str]:
        """Return the keys that must exist by a plan's [[entries]], and do not, unless they must by hand as well."""
        required, by_hand = (
            {key for entries in map(without_optional, each.entries) for key in self._list_keys(entries)}
            for each in (plan, self.read_by_hand())
        )
        return required - by_hand - self.keys

    def list_objects(self, plan: Plan) -> set[str]:
        """Return the objects of the application that a plan copies."""
        prefixes = tuple(each.prefix for each in plan.objects)
        return (self.list_keys(plan) & self.keys) | {key for key in self.keys if prefixes and key.startswith(prefixes)}

    def list_keys(self, plan: Plan) -> set[str]:
        """Return the keys that rows name by a plan's [[entries]], of objects that may not exist as well."""
        return {key for entries in plan.entries for key in self._list_keys(entries)}

    def _list_keys(self, entries: Entries) -> set[str]:
        with patch.dict(os.environ, DATABASE_URL=self._found.dsn), connect("test", autocommit=True) as connection:
            queries = EntryQueries.of(connection, entries)
            keys = {
                row["legacy_key"] for row in connection.execute(queries.compose_keys("legacy"), queries.parameters())
            }
        return self._open_folders(keys, entries) if entries.names_folders else keys

    def _open_folders(self, folders: set[str], entries: Entries) -> set[str]:
        """Return the keys in folders; of one that must not be empty, and is, its own name."""
        found = {folder: {key for key in self.keys if key.startswith(folder)} for folder in folders}
        return {key for folder, keys in found.items() for key in keys or (set() if entries.may_be_empty else {folder})}


def without_optional(entries: Entries) -> Entries:
    return msgspec.structs.replace(entries, optional=None) if entries.objects else entries
