"""Columns that tell something of a row's object, by their names: when the row changed, or where the object is. Pure."""

import re

from rowferry_cli.discover.evidence.catalogue import Column, UserTable

_VERB = r"(updat(ed?|ing|ion)?|modif(y|ied|ication)|chang(ed?|ing)?|writ(e|ten)|edit(ed)?|touch(ed)?|sav(ed?|ing))"
_TIME = r"(_?(at|on|dt|ts|time|date|datetime|stamp|timestamp|tstamp|s|ms|us|ns|millis|micros|unix|epoch|utc))*"
_CHANGE = re.compile(rf"(last_?)?{_VERB}{_TIME}|(date|time)_?(last_?)?{_VERB}|(last_?)?mod(_?time)?|m_?time")
_STATE = re.compile(r"(\w+_)?(storage|store|service|disk|bucket|backend|provider)(_(name|id|type|kind|key|code))?")
_TIME_TYPES = ("timestamp", "date")
"""Numbers may be times in four units, and counts as well: those a person names."""


def find_change_column(table: UserTable) -> str | None:
    """Return a column of times that is set at each change of a row; a timestamp rather than a date."""
    found = [column for column in table.columns.values() if _CHANGE.fullmatch(_write_plainly(column.name))]
    ranked = sorted((_TIME_TYPES.index(kind), one.name) for one in found if (kind := _name_type(one)))
    return ranked[0][1] if ranked else None


def _name_type(column: Column) -> str | None:
    return next((kind for kind in _TIME_TYPES if column.type.startswith(kind)), None)


def find_state_columns(table: UserTable) -> list[str]:
    """Return the columns that may say where a row's object is."""
    return [name for name in table.columns if _STATE.fullmatch(_write_plainly(name))]


def _write_plainly(name: str) -> str:
    """Return a column's name in lower case, its words apart."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-\s]+", "_", name).lower()
