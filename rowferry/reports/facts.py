"""What the servers of a migration were seen to do: noted by checks and workers, and known to workers that start."""

from collections.abc import Mapping

from psycopg import errors

from rowferry.db.connection import Connection, call
from rowferry.db.statements import statement

COPY_KEEPS_TAGS = "CopyObject keeps tags"
COPY_LEAVES_TAGS_OUT = "CopyObject leaves tags out"
"""Where the plan says so."""
NO_TAGS = "production server has no tags"
KEPT_OTHERS = "kept objects have other properties than their legacy objects"
READABLE = "legacy object can be read"
WRITTEN = "production object was written"
"""Each with a key of such an object: where others fail, workers ask whether it still holds."""

NOT_RECORDED = (
    errors.InsufficientPrivilege,
    errors.UndefinedFunction,
    errors.InvalidSchemaName,
    errors.ReadOnlySqlTransaction,
)
"""What PostgreSQL refuses where this role may record nothing, or there is no schema."""
Facts = Mapping[str, bool | str]
"""Whether each holds; the key of the object that has shown it, where there is one."""


def read_facts(connection: Connection, migration: str) -> dict[str, bool]:
    """Return what is known of the servers of a migration."""
    rows = connection.execute(statement("read_facts"), {"migration": migration}).fetchall()
    return {row["fact"]: row["holds"] for row in rows}


def record_facts(connection: Connection, migration: str, facts: Facts) -> None:
    """Record facts in the place of what was known; nothing where this role may not, or there is no schema."""
    try:
        with connection.transaction():
            for fact, holds in facts.items():
                key = holds if isinstance(holds, str) else None
                call(connection, "record_fact", migration, fact, bool(holds), key)
    except NOT_RECORDED:
        return
