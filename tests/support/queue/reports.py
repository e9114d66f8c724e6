"""The report of a migration as `rowferry report --json --manifest` reads it."""

from typing import TextIO

from rowferry.db.connection import Connection
from rowferry_cli.report.data import Report, open_snapshot, read_tables, write_manifest


def read_report(connection: Connection, migration: str, manifest: TextIO | None = None) -> tuple[Report, int]:
    """Return the report of a migration, and how many lines were written to `manifest`.

    Both are of one snapshot: the `entries` of the manifest add up to the report's outcomes other than migrated and
    kept. The connection must be idle and is used for this alone.
    """
    with open_snapshot(connection):
        report = read_tables(connection, migration)
        return report, 0 if manifest is None else write_manifest(connection, migration, manifest)
