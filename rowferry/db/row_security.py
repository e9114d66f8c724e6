"""What row-level security hides from this role, or forbids it. Pure: `describe_entries` reads the policies."""

from rowferry.db.description import Description
from rowferry.plan import Entries

REMEDY = "use the owner of the table, a role with BYPASSRLS, or a policy of this role with `using (true)`"


def find_withheld(entries: Entries, found: Description, *, update: bool) -> str | None:
    """Return what row-level security withholds of a table for reading or for updating; None: nothing.

    A policy whose condition is anything but `true` counts as one that may withhold rows.
    """
    shown = found.rows_to_update if update else found.rows_to_read
    if shown == "all" or (update and not entries.written_columns):
        return None
    security = f"row-level security of {entries.table}"
    if shown == "none":
        does = "lets this role update no row" if update else "hides every row from this role"
        return f"{security} {does}"
    if update:
        return f"{security} may forbid this role to update rows"
    return f"{security} may hide rows from this role, and a hidden row would stay behind"
