"""Commits that wait for a synchronous standby: nothing is wrong with the workers, and none can end a batch."""

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.formatting import count, format_duration


def describe_standby_wait(connection: Connection) -> str:
    """Return how many commits wait for a standby, for how long, and what ends it; empty: none, as far as one may see.

    PostgreSQL shows sessions of other roles to pg_read_all_stats alone.
    """
    with translated_errors():
        row = fetch_one(connection, statement("find_standby_wait"))
    if not row["commits"]:
        return ""
    wait = count(row["commits"], "commit waits", "commits wait")
    return (
        f"{wait} for a synchronous standby, for {format_duration(row['longest'])} so far: "
        "start the standby, or take it out of synchronous_standby_names"
    )
