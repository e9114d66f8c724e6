"""A pass that settles nothing: workers do not find the entries that the enqueue finds; another pass would go alike."""

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import RowferryError
from rowferry.formatting import count_entries
from rowferry.plan import Plan

HAS_DATABASE_COLLATION_VERSION = 150_000
"""The first server_version with pg_database.datcollversion."""


class PassInVain(RowferryError):
    """Passes find the same entries again and again, and no worker finds one of them; the message has the evidence."""


def explain_vain_pass(connection: Connection, plan: Plan, entries: int) -> PassInVain:
    """Return why passes end, with what is known of the reason; `entries`: those that were found again."""
    found = (
        f"The passes end: this one found {count_entries(entries)} again, and workers found none of them in the batches "
        f"of the pass before. The enqueue and the workers do not see the same rows of {', '.join(plan.labels)}."
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
