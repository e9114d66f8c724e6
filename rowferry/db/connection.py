"""The only file that opens connections to PostgreSQL; its errors leave here as rowferry's own."""

import codecs
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, LiteralString, cast

import psycopg
from psycopg import conninfo, errors, sql
from psycopg.rows import DictRow, dict_row

from rowferry.db.statements import statement
from rowferry.db.timeouts import apply_settings, choose_connection
from rowferry.environment import read_secret
from rowferry.errors import DatabaseBusy, DatabaseUnavailable, RowferryError, UsageError

Connection = psycopg.Connection[DictRow]
Query = sql.SQL | sql.Composed

OLDEST_POSTGRES = 14

CONNECT_TIMEOUT = timedelta(seconds=10)

KEEPALIVE = {
    "connect_timeout": int(CONNECT_TIMEOUT.total_seconds()),
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Client-side defaults of a connection; what DATABASE_URL or PG* says goes before them."""


def connect(purpose: str, *, autocommit: bool = False, bounded: bool = False) -> Connection:
    """Open a connection to the database that DATABASE_URL (or its file), or libpq's PG* variables, name.

    `purpose` ends up in pg_stat_activity as `rowferry <purpose>`. `bounded`: no statement may take longer than a
    worker's do, and one that has no answer then loses its connection.
    Raises UsageError when the settings cannot be read or the server is too old, DatabaseUnavailable when no connection
    comes about.
    """
    settings = read_settings(read_secret(os.environ, "DATABASE_URL"))
    settings["application_name"] = f"rowferry {purpose}"[:63]
    settings["client_encoding"] = "UTF8"  # keys of S3 are UTF-8, whatever the database or PGCLIENTENCODING says
    with translated_errors():
        settings |= {"autocommit": True, "row_factory": dict_row}
        connection = _open(choose_connection(bounded=bounded), settings)
        try:
            _refuse_old_server(connection.info.server_version)
            apply_settings(connection)
            connection.autocommit = autocommit
            # A guarded update must see what others have committed since the claim, whatever the default here is.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        except BaseException:
            connection.close()
            raise
    return connection


def _refuse_old_server(version: int) -> None:
    if version // 10_000 < OLDEST_POSTGRES:
        raise UsageError(
            f"This is PostgreSQL {version // 10_000}, and rowferry needs {OLDEST_POSTGRES} or newer: "
            "upgrade the server, or name another one."
        )


def _open(kind: type[psycopg.Connection[Any]], settings: dict[str, Any]) -> psycopg.Connection[Any]:
    """Connect. Raises DatabaseUnavailable, which names DATABASE_URL, where nothing says where the database is."""
    try:
        return kind.connect(**settings)
    except psycopg.OperationalError as error:
        told = settings.keys() & {"host", "hostaddr", "service"} or os.environ.keys() & {
            "PGHOST",
            "PGHOSTADDR",
            "PGSERVICE",
        }
        if told or error.sqlstate:
            raise
        words = "DATABASE_URL is not set, and no PostgreSQL answers on a socket of this host"
        raise DatabaseUnavailable(f"{words}: set it to postgresql://user:password@host:5432/database.") from error


def read_settings(url: str) -> dict[str, Any]:
    """Return the connection parameters of a URL or DSN, with the keepalive defaults where it has none.

    Raises UsageError, without a word of the URL (it may hold a password), when libpq cannot parse it.
    """
    try:
        parsed = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise UsageError(
            "DATABASE_URL cannot be read: it should look like postgresql://user:password@host:5432/database."
        ) from None
    return {**KEEPALIVE, **parsed}


def name_database() -> str:
    """Return where the settings lead, as `database on host:port`, without user or password."""
    settings = read_settings(read_secret(os.environ, "DATABASE_URL"))
    host = settings.get("host") or os.environ.get("PGHOST") or "this host"
    port = settings.get("port") or os.environ.get("PGPORT") or 5432
    name = settings.get("dbname") or os.environ.get("PGDATABASE") or "the default database"
    return f"{name} on {host}:{port}"


def call(connection: Connection, function: str, *arguments: Any) -> list[DictRow]:
    """Call `rowferry.<function>` with positional arguments and return its rows."""
    query = statement(
        "call_function",
        function=sql.Identifier(function),
        arguments=sql.SQL(", ").join([sql.Placeholder()] * len(arguments)),
    )
    return connection.execute(query, arguments).fetchall()


def fetch_one(connection: Connection, query: Query, parameters: dict[str, Any] | None = None) -> DictRow:
    """Return the one row of a query that always has one."""
    row = connection.execute(query, parameters).fetchone()
    if row is None:
        raise UsageError("The database answered nothing where one row was expected.")
    return row


def literal(text: str) -> sql.SQL:
    """Return SQL that a user's plan or PostgreSQL's own catalogue provided, ready for a query with parameters."""
    return sql.SQL(cast("LiteralString", text.replace("%", "%%")))


def identifiers(*names: str) -> sql.Identifier:
    """Return a quoted, dotted identifier, ready for a query with parameters."""
    return sql.Identifier(*(name.replace("%", "%%") for name in names))


def text_fitter(connection: Connection) -> Callable[[str | None], str | None]:
    """Return a function that replaces what the database cannot store in a text: by its encoding, and NUL."""
    encoding = (connection.info.parameter_status("server_encoding") or "UTF8").upper().replace("WIN", "CP")
    try:
        codec = codecs.lookup("UTF-8" if encoding in {"UTF8", "SQL_ASCII"} else encoding).name
    except LookupError:
        codec = "ascii"
    return lambda text: None if text is None else text.replace("\0", "?").encode(codec, "replace").decode(codec)


@contextmanager
def translated_errors() -> Generator[None]:
    """Turn the errors of psycopg into rowferry's own, `from` the original."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error


def translate(error: psycopg.Error) -> RowferryError:
    """Return what an error of psycopg means to us: the connection is gone, or a user's mistake in one sentence."""
    words = summarise(error)
    if absence := _word_absence(error, words):
        return DatabaseUnavailable(absence)
    match error:
        case errors.InsufficientPrivilege():
            return UsageError(f"PostgreSQL does not allow this role to do that: {words}; see `rowferry init --grants`.")
        case errors.InvalidSchemaName() | errors.UndefinedFunction() | errors.UndefinedTable() if "rowferry" in words:
            return UsageError(f"This database is not ready ({words}): run `rowferry init` first.")
        case psycopg.Error(sqlstate=str(state)) if state.startswith("40") or state in {"55P03", "57014"}:
            return DatabaseBusy(f"PostgreSQL could not do it just now: {words}.")
        case _:
            return UsageError(f"PostgreSQL refused: {words}.")


def _word_absence(error: psycopg.Error, words: str) -> str | None:
    """Return how the database is away, where that is what the error means: it may pass, on another connection."""
    match error:
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return f"PostgreSQL refused the login: {words}; check DATABASE_URL or PG*."
        case errors.ReadOnlySqlTransaction():
            standby = "see that DATABASE_URL or PG* does not lead to a standby"
            return f"PostgreSQL is read-only now: {words}; wait until it can be written to again, or {standby}."
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg.InternalError() if _lost(error):
            return f"PostgreSQL cannot be reached: {words}; check DATABASE_URL or PG*."
        case _:
            return None


def summarise(error: psycopg.Error) -> str:
    """Return the server's message in one line, without detail or context (they may quote a row)."""
    text = error.diag.message_primary or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[0] if error.diag.message_primary or not lines else _most_telling(lines)
    return last.removeprefix("connection failed: ").rstrip(".") if last else type(error).__name__


def _most_telling(lines: Sequence[str]) -> str:
    """Return the line of a failed connection that says why: the one with FATAL, else the first."""
    return next((line for line in lines if "FATAL" in line), lines[0])


def _lost(error: psycopg.Error) -> bool:
    """Return whether the connection is gone: no SQLSTATE at all, or class 08, 57P (the server is going away) or 25P0.

    Those are the ends of a transaction that has waited, or lasted, for too long: 25P03 and 25P04.
    """
    state = error.sqlstate or ""
    return not state or state.startswith(("08", "57P", "53", "25P03", "25P04"))
