"""Brings the schema `rowferry` of a database to this version: migrations once, functions and views every time."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from hashlib import sha256
from pathlib import Path

from psycopg import errors, sql
from psycopg.types.json import Jsonb

from rowferry import __version__
from rowferry.db.connection import Connection, call, fetch_one, set_local, translated_errors
from rowferry.db.statements import list_sql, read_head, read_sql, statement
from rowferry.errors import DatabaseBusy, UsageError
from rowferry.formatting import hide_unfit

UNRELEASED = (
    *(errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedObject, errors.AmbiguousFunction),
    errors.InvalidFunctionDefinition,
)
"""What PostgreSQL refuses where an unreleased version has made the tables, types or functions."""

RESTORED = (
    "The schema rowferry of this database was restored without its data, or without rowferry.schema_migration alone: "
    "restore them where rowferry.migration has rows, else `drop schema rowferry cascade` and run `rowferry init` again."
)


@dataclass(frozen=True, slots=True)
class Initialised:
    """What `initialise` did."""

    migrations: tuple[str, ...]
    """Names of the migrations that were applied just now, in order; empty when there was nothing new."""
    functions: int
    views: int
    version_before: str | None
    """The version that initialised the database last; None for a new one."""


def initialise(connection: Connection) -> Initialised:
    """Apply what is missing, in one transaction. A second caller, on any host, waits and then finds nothing to do.

    Raises UsageError, and changes nothing, when a newer or an unreleased rowferry has been here or the role may not
    create a schema; DatabaseBusy, when workers hold what has to change.
    """
    with _worded(), translated_errors(), connection.transaction():
        set_local(connection, statement_timeout="0")  # counting millions of batches takes long; locks wait as usual
        connection.execute(statement("lock_schema"))
        _refuse_something_else(connection)
        connection.execute(statement("create_schema"))
        _show_rows(connection)
        applied = _read_applied(connection)
        if not applied and fetch_one(connection, statement("has_tables"))["has_tables"]:
            raise UsageError(RESTORED)
        before, views_before = _refuse_newer(connection, applied)
        new = _apply_migrations(connection, applied)
        _show_rows(connection)
        functions, views = list_sql("functions"), _views_in_order()
        seen = _replace(connection, functions, views, views_before)
        if fetch_one(connection, statement("tally_is_missing"))["tally_is_missing"]:
            call(connection, "recount_batches")
        connection.execute(statement("analyze_small_tables"))
        connection.execute(statement("revoke_functions"))
        connection.execute(statement("record_installation"), {"version": __version__, "views": Jsonb(seen)})
    return Initialised(tuple(new), len(functions), len(views), before)


@contextmanager
def _worded() -> Generator[None]:
    """Say what to do about sessions that keep a table or a view in use."""
    try:
        yield
    except DatabaseBusy as error:
        raise DatabaseBusy(
            "The tables of rowferry are in use, so nothing was changed. Stop workers, or pause them with `rowferry "
            "pause --all-migrations` and wait for the running batches; end other transactions that have read or "
            "changed them (pg_locks names their sessions); then run `rowferry init` again."
        ) from error


def check_version(connection: Connection) -> None:
    """Raise UsageError unless this database was initialised by exactly this schema, and this role sees its tables."""
    with translated_errors():
        if hidden := connection.execute(statement("find_hidden_table")).fetchone():
            raise UsageError(
                f"Row-level security hides rowferry.{hidden['name']} from this role: let the owner of the schema run "
                "`rowferry init`, which switches it off."
            )
        applied = _read_applied(connection)
    if not applied:
        raise UsageError(RESTORED)
    known = _known_migrations()
    if applied.keys() != known.keys():
        age = "a newer" if len(applied) > len(known) else "an older"
        raise UsageError(f"The database was initialised by {age} rowferry: run `rowferry init` of the newest version.")


def _show_rows(connection: Connection) -> None:
    """Switch row-level security off, which an event trigger or a script may have enabled on our tables."""
    for row in connection.execute(statement("list_secured_tables")).fetchall():
        connection.execute(statement("disable_row_security", table=sql.Identifier(row["name"])))


def _refuse_something_else(connection: Connection) -> None:
    """Raise UsageError where the schema has a name that we need and was made by another program."""
    row = connection.execute(statement("find_something_else")).fetchone()
    if row and row["name"]:
        raise UsageError(
            "The schema rowferry of this database belongs to something else (it has "
            f"{hide_unfit(row['name'])}): rename it, or choose another database."
        )


def _refuse_newer(connection: Connection, applied: dict[int, str]) -> tuple[str | None, dict[str, str]]:
    """Return which version initialised the database last, and the views that it left, by name and as `describe_view`.

    Raises UsageError where that version is newer than this one.
    """
    row = connection.execute(statement("read_installation")).fetchone()
    before: str | None = row["version"] if row else None
    unknown = [name for number, name in applied.items() if number not in _known_migrations()]
    if unknown or (before is not None and _numbers(before) > _numbers(__version__)):
        what = f"and has {unknown[0]}, which is unknown to" if unknown else "which is newer than"
        raise UsageError(
            f"This database was initialised by rowferry {before}, {what} this {__version__}: update rowferry on this "
            "host."
        )
    return before, row["views"] if row else {}


def _known_migrations() -> dict[int, Path]:
    """Return the migrations of this version, by their numbers, in order."""
    return {int(path.stem.split("_")[0]): path for path in list_sql("migrations")}


def _read_applied(connection: Connection) -> dict[int, str]:
    """Return the names of the migrations that this database has, by their numbers.

    Raises UsageError where one is not this version's of its number: no release changes one.
    """
    known, applied = _known_migrations(), dict[int, str]()
    try:
        rows = connection.execute(statement("applied_migrations")).fetchall()
    except errors.UndefinedColumn as error:
        raise _made_unreleased(error.diag.message_primary or str(error)) from error
    for row in rows:
        number, name = row["number"], row["name"]
        if number in known and (known[number].stem, _digest(known[number])) != (name, row["digest"]):
            raise _made_unreleased(f"migration {name}")
        applied[number] = name
    return applied


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _made_unreleased(sign: str) -> UsageError:
    """Return what to say of a schema that no release made; `sign`: what shows it."""
    return UsageError(
        f"The schema rowferry of this database was made by an unreleased version ({sign}): finish your migrations with "
        "that version, then `drop schema rowferry cascade` and run `rowferry init` again."
    )


def _apply_migrations(connection: Connection, applied: dict[int, str]) -> list[str]:
    names: list[str] = []
    for number, path in _known_migrations().items():
        if number not in applied:
            _apply(connection, path)
            record = {"number": number, "name": path.stem, "digest": _digest(path), "applied_by": __version__}
            connection.execute(statement("record_migration"), record)
            names.append(path.stem)
    return names


def _views_in_order() -> list[Path]:
    """Return the view files so that a view comes after those it reads."""
    paths = {path.stem: path for path in list_sql("views")}
    reads = {name: set(re.findall(r"rowferry\.(\w+)", path.read_text())) & set(paths) for name, path in paths.items()}
    order = TopologicalSorter({name: names - {name} for name, names in reads.items()}).static_order()
    return [paths[name] for name in order]


def _replace(
    connection: Connection, functions: list[Path], views: list[Path], before: dict[str, str]
) -> dict[str, str]:
    """Replace functions, and views that are not as `before`; return what each view is now, by name.

    Raises UsageError where an unreleased version has applied the migrations (UNRELEASED).
    """
    # A function may call another that does not exist yet; and PostgreSQL words a view the same each time.
    set_local(connection, check_function_bodies="off", search_path="pg_catalog, pg_temp")
    try:
        connection.execute(statement("make_claim_key"))
        for path in functions:
            _apply(connection, path)
        now = {path.stem: _replace_view(connection, path, before.get(path.stem)) for path in views}
        connection.execute(_comments(functions, views))
    except UNRELEASED as error:
        raise _made_unreleased(error.diag.message_primary or str(error)) from error
    return now


def _replace_view(connection: Connection, path: Path, before: str | None) -> str:
    """Replace a view in place, which keeps its grants; drop it first only where its columns have changed.

    Do nothing where file and view are as `before`. Return what they are now.
    """
    if before is not None and _describe_view(connection, path) == before:
        return before
    try:
        with connection.transaction():
            _apply(connection, path)
    except errors.InvalidTableDefinition:
        connection.execute(statement("drop_view", view=sql.Identifier(path.stem)))
        _apply(connection, path)
    return _describe_view(connection, path)


def _describe_view(connection: Connection, path: Path) -> str:
    """Return in short what the file of a view says, and what the view is."""
    (row,) = connection.execute(statement("describe_view"), {"name": f"rowferry.{path.stem}"}).fetchall()
    return f"{_digest(path)} {row['definition']}"


def _comments(functions: list[Path], views: list[Path]) -> sql.Composed:
    """Return the statements that have psql describe functions and views by the heads of their files."""
    comments = [_comment("comment_on_function", path) for path in functions]
    comments += [_comment("comment_on_view", path) for path in views]
    return sql.SQL(";").join(comments)


def _comment(name: str, path: Path) -> sql.Composed:
    described, text = sql.Identifier("rowferry", path.stem), sql.Literal("\n".join(read_head(path)))
    return statement(name, described=described, comment=text)


def _apply(connection: Connection, path: Path) -> None:
    connection.execute(read_sql(path))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version)[:3])
