"""Passes in vain: workers do not find entries that pass after pass finds; another would go alike."""

from collections import deque

from rowferry.db.connection import Connection, fetch_one, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import RowferryError
from rowferry.formatting import count_entries
from rowferry.plan import Plan

HAS_DATABASE_COLLATION_VERSION = 150_000
"""The first server_version with pg_database.datcollversion."""
IN_VAIN = 3
"""Passes that find the same entry. An application may set a row back once, or delete what a pass has just found."""


class PassInVain(RowferryError):
    """Passes find the same entries again and again, and no worker finds them; the message has the evidence."""


class Passes:
    """Where the last passes of a run begin in the queue, by the ids of batches."""

    def __init__(self, connection: Connection, plan: Plan, queue: str) -> None:
        """Of a run that enqueues batches of this queue."""
        self._connection, self._plan, self._queue = connection, plan, queue
        self._begun: deque[int] = deque(maxlen=IN_VAIN)

    def begin(self) -> None:
        """Note that a pass begins."""
        with translated_errors():
            self._begun.append(fetch_one(self._connection, statement("last_batch"), {})["id"])

    def check(self, entries: int) -> None:
        """Raise PassInVain where this pass, which found so many, and those before found one that no worker has."""
        if len(self._begun) < IN_VAIN:
            return
        asked = {"migration": self._plan.name, "queue": self._queue, "after": self._begun[0], "times": IN_VAIN}
        with translated_errors():
            is_found = fetch_one(self._connection, statement("found_in_vain"), asked)["found"]
        if is_found:
            raise explain_vain_pass(self._connection, self._plan, entries)


def explain_vain_pass(connection: Connection, plan: Plan, entries: int) -> PassInVain:
    """Return why passes end, with what is known of the reason; `entries`: those that this pass found."""
    found = (
        f"The passes end: this one found {count_entries(entries)}, and an entry for the third time that no worker has "
        f"found. The enqueue and the workers do not see the same rows of {', '.join(plan.labels)}."
    )
    outdated = _list_outdated(connection)
    if outdated:
        return PassInVain(
            f"{found} {' '.join(outdated)} Indexes of texts may be out of order by that: rebuild them (`reindex`), "
            "refresh the version, then run this command again."
        )
    return PassInVain(
        f"{found} Look for a `where` or row-level security that depends on the role or the session, and rebuild the "
        "index of the ids (`reindex`), then run this command again."
    )


def _list_outdated(connection: Connection) -> list[str]:
    """Return a sentence for each collation whose version has changed since the indexes were made."""
    names = ["outdated_collations"]
    if connection.info.server_version >= HAS_DATABASE_COLLATION_VERSION:
        names.insert(0, "outdated_database_collation")
    with translated_errors():
        rows = [row for name in names for row in connection.execute(statement(name)).fetchall()]
    return [f"{row['name']} was made by collation version {row['made_by']}, and this is {row['now']}." for row in rows]
