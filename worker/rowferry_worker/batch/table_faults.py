"""Tells the fault of a whole table from that of one row: a table or column renamed, retyped, or no longer allowed."""

import psycopg

from rowferry.db.connection import Connection, summarise
from rowferry.db.entries import EntrySql
from rowferry.errors import MigrationFault

_ABOUT_NAMES_AND_RIGHTS = "42"
"""The class of SQLSTATE of undefined names, wrong types and missing rights."""
_ABOUT_VALUES = "22"


def refuse_unreadable(connection: Connection, entry_sql: EntrySql, error: psycopg.Error, first: str, last: str) -> None:
    """Raise MigrationFault where reading a range failed because of the table, whatever rows are in it.

    The statement's savepoint has been rolled back.
    """
    state = error.sqlstate or ""
    if state.startswith((_ABOUT_NAMES_AND_RIGHTS, _ABOUT_VALUES)):
        entry_sql.check(connection, update=False)
    if state.startswith(_ABOUT_NAMES_AND_RIGHTS):
        words = f"the entries of {entry_sql.entries.label} cannot be read: {summarise(error)}"
        raise MigrationFault(f"{words}; correct the table or the plan") from error
    if state.startswith(_ABOUT_VALUES) and not _are_ids(connection, entry_sql, first, last):
        words = f"the ids of the batches that wait are not of type {entry_sql.id_type} any more"
        raise MigrationFault(f"{words} ({entry_sql.entries.label}): change the column back, or delete those batches")


def refuse_unwritable(connection: Connection, entry_sql: EntrySql, error: psycopg.Error) -> None:
    """Raise MigrationFault where an update failed because of the table. What a trigger does wrong is its rows' fault.

    The statement's savepoint has been rolled back.
    """
    if (error.sqlstate or "").startswith((_ABOUT_NAMES_AND_RIGHTS, _ABOUT_VALUES)):
        entry_sql.check(connection, update=True)


def _are_ids(connection: Connection, entry_sql: EntrySql, first: str, last: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(entry_sql.compose("cast_bounds"), {"first": first, "last": last})
    except psycopg.DataError:
        return False
    return True
