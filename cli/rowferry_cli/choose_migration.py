"""Which migration a command is about: the one named, the plan's, or the only one that there is."""

from pathlib import Path

from rowferry.db.connection import Connection, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan_file import read_plan


def choose_one_or_all(connection: Connection, name: str | None, plan_path: Path, *, every: bool) -> str | None:
    """Return the name of a migration as `choose_migration` does, or None, which means all, where `every` is set."""
    if every and name is not None:
        raise UsageError("Name a migration or say --all, not both.")
    return None if every else choose_migration(connection, name, plan_path)


def choose_migration(connection: Connection, name: str | None, plan_path: Path) -> str:
    """Return the name of a migration that the database holds.

    Where none is named it is the plan's; where there is no plan file either (an operator's machine), the only one.
    Raises UsageError when there is no such migration, or no saying which one is meant.
    """
    known = _list_migrations(connection)
    if name is None and (plan_path.exists() or len(known) > 1):
        name = read_plan(plan_path).name
    chosen = known[0] if name is None else name
    _refuse_unknown(chosen, known)
    return chosen


def check_migration(connection: Connection, name: str) -> None:
    """Raise UsageError unless the database holds a migration of this name."""
    _refuse_unknown(name, _list_migrations(connection))


def _list_migrations(connection: Connection) -> list[str]:
    with translated_errors():
        known = [row["name"] for row in connection.execute(statement("list_migrations"))]
    if not known:
        raise UsageError("Nothing was enqueued in this database yet: run `rowferry enqueue` first.")
    return known


def _refuse_unknown(name: str, known: list[str]) -> None:
    if name not in known:
        raise UsageError(f"There is no migration {name!r} in this database; there is {', '.join(known)}.")
