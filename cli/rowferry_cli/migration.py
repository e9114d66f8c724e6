"""Which migration a command is about: --migration NAME, else the plan's, else the only one in the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rowferry.errors import UsageError
from rowferry_cli.options import plan_option

if TYPE_CHECKING:
    from rowferry.db.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])


def migration_option(function: F) -> F:
    """Add --migration, which arrives as `migration`, and --plan."""
    return click.option(
        "--migration",
        metavar="NAME",
        help="The migration.  [default: the plan's, or the only one in the database]",
    )(plan_option(function))


def queue_option(function: F) -> F:
    """Add --queue, which arrives as `queue`."""
    return click.option("--queue", metavar="NAME", help="Only this queue.")(function)


def all_migrations_option(function: F) -> F:
    """Add --all-migrations."""
    return click.option("--all-migrations", is_flag=True, help="All migrations in the database.")(function)


def choose_one_or_all(connection: Connection, name: str | None, plan_path: Path, *, all_migrations: bool) -> str | None:
    """Return a migration's name as `choose_migration` does; None, which means all, with `all_migrations`."""
    if all_migrations and name is not None:
        raise click.UsageError("give --migration or --all-migrations, not both")
    return None if all_migrations else choose_migration(connection, name, plan_path)


def choose_migration(connection: Connection, name: str | None, plan_path: Path) -> str:
    """Return the name of a migration in the database: `name`, else the plan's; without a plan, the only one.

    Raises UsageError when there is no such migration, or when there are several and none is named.
    """
    from rowferry.db.schema import check_version
    from rowferry.plan_file import read_plan

    known = list_migrations(connection)
    if not known:
        check_version(connection)  # rows may be hidden, or lost
        raise UsageError("This database has no migration yet: run `rowferry enqueue` first.")
    if name is None and plan_path.exists():
        name = read_plan(plan_path).name
    if name is None and len(known) > 1:
        raise UsageError(f"This database has several migrations: add --migration with one of {', '.join(known)}.")
    chosen = known[0] if name is None else name
    if chosen not in known:
        raise UsageError(f"There is no migration {chosen!r} in this database; there is {', '.join(known)}.")
    return chosen


def choose_queue(connection: Connection, queue: str | None, migration: str | None) -> str | None:
    """Return the queue of a migration, or of any if that is None. Raises UsageError where there is no such queue."""
    if queue is None:
        return None
    names = list_queues(connection, migration)
    if queue not in names:
        where = "This database" if migration is None else f"Migration {migration}"
        known = f"it has {', '.join(names)}" if names else "nothing is enqueued there yet"
        raise UsageError(f"{where} has no queue {queue!r}; {known}.")
    return queue


def list_queues(connection: Connection, migration: str | None) -> list[str]:
    """Return the names of the queues that have batches or settings, of a migration or, if that is None, of any."""
    from rowferry.db.connection import translated_errors
    from rowferry.db.statements import statement

    with translated_errors():
        found = connection.execute(statement("list_migration_queues"), {"migration": migration}).fetchall()
    return [row["queue_name"] for row in found]


def list_migrations(connection: Connection) -> list[str]:
    """Return the names of all migrations in the database."""
    from rowferry.db.connection import translated_errors
    from rowferry.db.statements import statement

    with translated_errors():
        return [row["name"] for row in connection.execute(statement("list_migrations"))]
