"""Opens all connections to PostgreSQL, and turns the errors of psycopg into rowferry's own."""

import json
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, LiteralString, cast

import msgspec
import psycopg
from psycopg import conninfo, errors, sql
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg.types.json import set_json_loads

from rowferry.db.arrays import TextListDumper
from rowferry.db.statements import statement
from rowferry.db.timeouts import apply_settings, choose_connection
from rowferry.environment import read_secret
from rowferry.errors import DatabaseBusy, DatabaseUnavailable, RowferryError, UsageError

Connection = psycopg.Connection[DictRow]
Query = sql.SQL | sql.Composed

OLDEST_POSTGRES = 14
EXAMPLE_URL = "postgresql://user:password@host:5432/database"

SHOWN_SETTINGS = ("host", "hostaddr", "port", "dbname")

CONNECT_TIMEOUT = timedelta(seconds=10)

NO_SCHEMA = re.compile(r'schema "rowferry"|relation "rowferry\.(schema_)?migration"')
"""What PostgreSQL finds missing where nothing was ever initialised."""

LOGIN_REFUSED = ("password authentication failed", "no pg_hba.conf entry")
"""How PostgreSQL words it in English: libpq gives no SQLSTATE of a connection that could not be made."""

KEEPALIVE = {
    "connect_timeout": int(CONNECT_TIMEOUT.total_seconds()),
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Client-side defaults of a connection; DATABASE_URL and PG* override them."""


def connect(purpose: str, *, autocommit: bool = False, bounded: bool = False) -> Connection:
    """Connect to the database that DATABASE_URL (or its file), or libpq's PG* variables, name.

    pg_stat_activity shows `rowferry <purpose>`. `bounded`: statements have the timeout and the deadline of a worker's.
    Raises UsageError when the settings cannot be read or the server is too old, DatabaseUnavailable when the connection
    fails.
    """
    settings = read_settings(read_secret(os.environ, "DATABASE_URL"))
    settings["application_name"] = f"rowferry {purpose}"[:63]
    settings["client_encoding"] = "UTF8"  # as S3 keys are, whatever the database or PGCLIENTENCODING says
    with translated_errors():
        settings |= {"autocommit": True, "row_factory": dict_row}
        connection = _open(choose_connection(bounded=bounded), settings)
        try:
            _refuse_old_server(connection.info.server_version)
            apply_settings(connection)
            set_json_loads(read_json, connection)
            connection.adapters.register_dumper(list, TextListDumper)
            connection.autocommit = autocommit
            # A guarded update must see what others have committed since the claim, whatever the server's default is.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        except BaseException:
            connection.close()
            raise
    return connection


def read_json(text: str | bytes) -> Any:
    """Return a JSON document of the server. msgspec takes a third of the time of `json` for the items of a batch."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:  # a number that no float can hold, half of a surrogate pair
        return json.loads(text)


def _refuse_old_server(version: int) -> None:
    if version // 10_000 < OLDEST_POSTGRES:
        raise UsageError(
            f"This is PostgreSQL {version // 10_000}, and rowferry needs {OLDEST_POSTGRES} or newer: "
            "upgrade the server, or name another one."
        )


def _open(kind: type[psycopg.Connection[Any]], settings: dict[str, Any]) -> psycopg.Connection[Any]:
    """Connect. Raises DatabaseUnavailable where no setting says where the database is."""
    try:
        return kind.connect(**settings)
    except psycopg.OperationalError as error:
        variables = {"PGHOST", "PGHOSTADDR", "PGSERVICE"}
        if settings.keys() & {"host", "hostaddr", "service"} or os.environ.keys() & variables or error.sqlstate:
            raise
        fault = "DATABASE_URL is not set, and no PostgreSQL answers on a socket of this host"
        raise DatabaseUnavailable(f"{fault}: set it to {EXAMPLE_URL}.") from error


def read_settings(url: str) -> dict[str, Any]:
    """Return the connection parameters of a URL or DSN, with the keepalive defaults where it has none.

    Raises UsageError when libpq cannot parse it; the message does not quote the URL, which may hold a password.
    """
    try:
        parsed = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        parsed = None
    # Of a password with `@` or `/`, libpq takes the rest for a host, a port or a database, which messages name.
    if parsed is None or ("://" in url and any("@" in str(parsed.get(name)) for name in SHOWN_SETTINGS)):
        raise UsageError(
            f"DATABASE_URL cannot be read: it should look like {EXAMPLE_URL}, with `@` and `/` of a password as `%40` "
            "and `%2F`."
        )
    return {**KEEPALIVE, **parsed}


def name_database() -> str:
    """Return `database on host:port`, without user or password."""
    settings = read_settings(read_secret(os.environ, "DATABASE_URL"))
    host = settings.get("host") or os.environ.get("PGHOST") or "this host"
    port = settings.get("port") or os.environ.get("PGPORT") or 5432
    name = settings.get("dbname") or os.environ.get("PGDATABASE") or "the default database"
    return f"{name} on {host}:{port}"


def call(connection: Connection, function: str, *arguments: Any) -> list[DictRow]:
    """Call `rowferry.<function>` with positional arguments and return its rows."""
    return connection.execute(compose_call(function, len(arguments)), arguments).fetchall()


def set_local(connection: Connection, **settings: str | timedelta) -> None:
    """Change settings of PostgreSQL for the rest of the transaction, such as `jit="off"`."""
    values = [
        value if isinstance(value, str) else f"{int(value.total_seconds() * 1000)}ms" for value in settings.values()
    ]
    connection.execute(statement("set_local"), {"names": list(settings), "values": values})


@cache
def compose_call(function: str, arguments: int) -> sql.Composed:
    """Return the call of `rowferry.<function>` with so many positional arguments."""
    placeholders = sql.SQL(", ").join([sql.Placeholder()] * arguments)
    return statement("call_function", function=sql.Identifier(function), arguments=placeholders)


def fetch_one(connection: Connection, query: Query, parameters: dict[str, Any] | None = None) -> DictRow:
    """Return the one row of a query that always has one."""
    row = connection.execute(query, parameters).fetchone()
    if row is None:
        raise UsageError("A query of rowferry returned no row; expected exactly one.")
    return row


def fetch_tuples(cursor: psycopg.Cursor[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a query of many, without the names of their columns: psycopg makes dictionaries in Python."""
    cursor.row_factory = tuple_row
    return cursor.fetchall()


def literal(text: str) -> sql.SQL:
    """Return SQL from a user's plan or PostgreSQL's catalogue, escaped for a query with parameters."""
    return sql.SQL(cast("LiteralString", text.replace("%", "%%")))


def identifiers(*names: str) -> sql.Identifier:
    """Return a quoted, dotted identifier, escaped for a query with parameters."""
    return sql.Identifier(*(name.replace("%", "%%") for name in names))


@contextmanager
def translated_errors() -> Generator[None]:
    """Turn the errors of psycopg into rowferry's own, `from` the original."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error


def translate(error: psycopg.Error) -> RowferryError:
    """Return the rowferry error that stands for an error of psycopg."""
    message = summarise(error)
    if unavailable := _explain_absence(error, message):
        return DatabaseUnavailable(unavailable)
    match error:
        case errors.InsufficientPrivilege():
            return UsageError(
                f"PostgreSQL does not allow this role to do that: {message}; see `rowferry init --grants`."
            )
        case errors.InvalidSchemaName() | errors.UndefinedFunction() | errors.UndefinedTable() if "rowferry" in message:
            lack = f"This database is not ready ({message})"
            if NO_SCHEMA.search(message):
                lack = "This database has no schema rowferry yet"
            return UsageError(f"{lack}: run `rowferry init` first.")
        case errors.InvalidTextRepresentation() if "json" in message:  # below PostgreSQL 16, no query can ask first
            return UsageError(
                f"PostgreSQL refused: {message}; correct rows whose text is no JSON, or leave them out by `where` in "
                "the plan: `rowferry check` names the column, and a condition."
            )
        case psycopg.Error(sqlstate=str(state)) if state.startswith("40") or state in {"55P03", "57014"}:
            return DatabaseBusy(f"PostgreSQL is busy: {message}.")
        case _:
            return UsageError(f"PostgreSQL refused: {message}.")


def _explain_absence(error: psycopg.Error, message: str) -> str | None:
    """Return a sentence where the error may pass on another connection; None: it would not."""
    match error:
        case psycopg.OperationalError() if _is_login_refused(error, message):
            return f"PostgreSQL refused the login: {message}; check DATABASE_URL or PG*."
        case errors.ReadOnlySqlTransaction():
            standby = "see that DATABASE_URL or PG* does not lead to a standby"
            return f"PostgreSQL is read-only now: {message}; wait until it can be written to again, or {standby}."
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg.InternalError() if _lost(error):
            return f"PostgreSQL cannot be reached: {message}; check DATABASE_URL or PG*."
        case _:
            return None


def _is_login_refused(error: psycopg.Error, message: str) -> bool:
    """Return whether the server took no such user or password; 28 is the class of that (PostgreSQL, Appendix A)."""
    return (error.sqlstate or "").startswith("28") or any(words in message for words in LOGIN_REFUSED)


def summarise(error: psycopg.Error) -> str:
    """Return the server's message in one line, without detail or context (they may quote a row)."""
    primary = error.diag.message_primary
    lines = [line.strip() for line in (primary or str(error)).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # Of a failed connection, the line with FATAL says why.
    telling = lines[0] if primary else next((line for line in lines if "FATAL" in line), lines[0])
    return telling.removeprefix("connection failed: ").rstrip(".")


def _lost(error: psycopg.Error) -> bool:
    """Return whether the connection is gone, by SQLSTATE.

    None at all; 08: connection exception; 53: insufficient resources; 57P: the server is going away; 25P03 and 25P04:
    the transaction was idle, or lasted, for too long.
    """
    state = error.sqlstate or ""
    return not state or state.startswith(("08", "53", "57P", "25P03", "25P04"))
