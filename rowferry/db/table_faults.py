"""What PostgreSQL refuses for every row of a table, and what ends that."""

import psycopg
from psycopg import errors

from rowferry.db.connection import summarise

SETTING = "set it for rowferry: PGOPTIONS='-c NAME=VALUE', or `alter role … set NAME = VALUE`"


def explain_table_fault(error: psycopg.Error) -> str | None:
    """Return what ends a refusal that every UPDATE of the table meets; None where another row may be taken.

    A published table without replica identity; a setting that a trigger reads and no session has.
    """
    if isinstance(error, errors.ObjectNotInPrerequisiteState) and not error.diag.context:
        return "give the published table one: `alter table … replica identity using index …`, or `full`"
    if isinstance(error, errors.UndefinedObject):
        return SETTING if "configuration parameter" in summarise(error) else "fix the trigger that names it"
    return None
