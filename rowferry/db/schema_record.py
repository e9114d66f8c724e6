"""What the schema `rowferry` says of the migrations that were applied to it: rows, and a comment that dumps keep."""

from hashlib import sha256
from pathlib import Path

from psycopg.rows import tuple_row

from rowferry import __version__
from rowferry.db.connection import Connection, fetch_one
from rowferry.db.statements import list_sql, statement
from rowferry.errors import UsageError


def known_migrations() -> dict[int, Path]:
    """Return the migrations of this version, by their numbers, in order."""
    return {int(path.stem.split("_")[0]): path for path in list_sql("migrations")}


def read_applied(connection: Connection) -> dict[int, str]:
    """Return the names of the migrations that this database has, by their numbers."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        return dict(cursor.execute(statement("applied_migrations")).fetchall())


def restore_record(connection: Connection) -> dict[int, str]:
    """Record anew which migrations were applied, by the comment that a dump without data has kept, and return them.

    Raises UsageError where there are tables and no such comment.
    """
    if not fetch_one(connection, statement("has_tables"))["has_tables"]:
        return {}
    names = [recorded.partition(":")[0] for recorded in _read_recorded(connection)]
    if not names:
        raise UsageError(
            "The schema rowferry of this database was restored without its data and its comments, so its version is "
            "not known: `drop schema rowferry cascade` and run `rowferry init` again."
        )
    for name in names:
        record = {"number": int(name.split("_")[0]), "name": name, "applied_by": __version__}
        connection.execute(statement("record_migration"), record)
    return read_applied(connection)


def _read_recorded(connection: Connection) -> list[str]:
    """Return the fingerprints of the migrations that were applied; none where an unreleased version has made it all."""
    comment: str | None = fetch_one(connection, statement("read_comment_on_record"))["comment"]
    return (comment or "").split()


def list_fingerprints() -> list[str]:
    """Return each migration's name with the digest of its file: what a release has applied never changes."""
    return [f"{path.stem}:{sha256(path.read_bytes()).hexdigest()[:12]}" for path in known_migrations().values()]


def refuse_unreleased(connection: Connection, applied: dict[int, str]) -> list[str]:
    """Raise UsageError where a migration is not the one that was applied under its number: no release changes one.

    Return the fingerprints that were recorded.
    """
    known, recorded = known_migrations(), _read_recorded(connection)
    names = {fingerprint.partition(":")[0] for fingerprint in recorded if fingerprint not in list_fingerprints()}
    for number, name in applied.items():
        if number in known and (known[number].stem != name or name in names):
            raise made_unreleased(f"migration {name}")
    return recorded


def made_unreleased(sign: str) -> UsageError:
    """Return what to say of a schema that no release made; `sign`: what shows it."""
    return UsageError(
        f"The schema rowferry of this database was made by an unreleased version ({sign}): finish your migrations with "
        "that version, then `drop schema rowferry cascade` and run `rowferry init` again."
    )
