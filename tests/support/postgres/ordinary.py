"""Servers on which an ordinary role owns every database, and the few ways to be more than that."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from rowferry_lab.servers.postgres import EmbeddedPostgres

OWNER = "rowferry"
"""The role that tests, and with them rowferry, log in as: no superuser, may make neither roles nor databases."""
SUPERUSER = "postgres"

NO_OPTIONS = sql.SQL("")
CHANGE_SETTINGS = """
create or replace function public.change_settings(p_settings jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    load 'auto_explain';
    perform set_config(key, value, false) from jsonb_each_text(p_settings);
end $$
"""
MAKE_OWNER = "create role {} login nosuperuser nocreaterole nocreatedb password {}"

_passwords: dict[str, str] = {}
"""That of the superuser and of the owner alike, by the port of a server."""
_sessions: dict[int, psycopg.Connection[Any]] = {}
"""By the port of a server a superuser's session that makes and drops databases: most tests have one of their own."""
_why_superuser: list[str] = []
"""Why the running test needs a superuser, as its marker says; empty where it has none."""


@contextmanager
def ordinary_postgres(**chosen: Any) -> Iterator[EmbeddedPostgres]:
    """Yield a running server with both roles; `chosen` as EmbeddedPostgres takes it."""
    with EmbeddedPostgres(user=SUPERUSER, **chosen) as server:
        add_owner(server)
        with administrator(server.dsn(), "postgres") as session:
            _sessions[server.port] = session
            try:
                yield server
            finally:
                del _sessions[server.port]


def add_owner(server: EmbeddedPostgres) -> str:
    """Make the ordinary role on a server whose superuser is SUPERUSER, and return its DSN: `postgres` belongs to it."""
    _passwords[str(server.port)] = server.password
    owner = sql.Identifier(OWNER)
    hash_passwords_quickly(server)
    with administrator(server.dsn()) as connection:
        connection.execute(sql.SQL(MAKE_OWNER).format(owner, make_verifier(connection, OWNER, server.password)))
        connection.execute(sql.SQL("alter database postgres owner to {}").format(owner))
    return as_owner(server.dsn())


def hash_passwords_quickly(server: EmbeddedPostgres) -> None:
    """Let PostgreSQL hash each password of the tests once instead of 4,096 times, where it can be told (from 16 on).

    A connection takes a fifth of the CPU then, on both sides; a test makes many.
    """
    superuser = sql.Identifier(SUPERUSER)
    with administrator(server.dsn()) as connection:
        if connection.info.server_version < 160_000:
            return
        connection.execute(sql.SQL("alter role {} set scram_iterations = 1").format(superuser))
    with administrator(server.dsn()) as connection:
        verifier = make_verifier(connection, SUPERUSER, server.password)
        connection.execute(sql.SQL("alter role {} password {}").format(superuser, verifier))


def make_verifier(connection: psycopg.Connection[Any], role: str, password: str) -> sql.Literal:
    """Return what PostgreSQL stores of a password, so that no server's log gets the password itself."""
    verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    return sql.Literal(verifier.decode())


@contextmanager
def administrator(dsn: str, database: str | None = None) -> Iterator[psycopg.Connection[Any]]:
    """Yield a superuser's session in autocommit, for what is done before rowferry comes: roles, databases, settings.

    `dsn` may be any role's; `database` None means that of `dsn`.
    """
    with psycopg.connect(_url(dsn, SUPERUSER, database), autocommit=True) as connection:
        yield connection


def set_as_administrator(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    """Change settings of an ordinary role's session that only a superuser may change: what is logged of it."""
    info = connection.info
    with administrator(make_conninfo(host=info.host, port=info.port, dbname=info.dbname)) as session:
        session.execute(CHANGE_SETTINGS)
    connection.execute("select public.change_settings(%s)", (Jsonb(dict(settings)),))


def make_own_database(dsn: str, name: str, options: sql.Composable = NO_OPTIONS) -> str:
    """Make a database that belongs to the ordinary role, on the server of `dsn`, and return the role's DSN of it."""
    with _session_of(dsn) as connection:
        create = sql.SQL("create database {} owner {} {}")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(OWNER), options))
    return _url(dsn, OWNER, name)


def drop_database(dsn: str, name: str) -> None:
    """Drop a database on the server of `dsn`, whoever is still in it."""
    with _session_of(dsn) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@contextmanager
def _session_of(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield the session of a server that runs for many tests, or one for this once."""
    session = _sessions.get(int(conninfo_to_dict(dsn)["port"] or 0))
    if session is not None and _answers(session):
        yield session
    else:
        with administrator(dsn, "postgres") as connection:
            yield connection


def _answers(session: psycopg.Connection[Any]) -> bool:
    """Return whether a session is still there: a test may have restarted the server, or ended the session."""
    with suppress(psycopg.OperationalError):
        session.execute("select 1")
        return True
    return False


def as_owner(dsn: str) -> str:
    """Return the DSN of the same database for the ordinary role that owns it."""
    return _url(dsn, OWNER)


def as_superuser(dsn: str) -> str:
    """Return the DSN of the same database for the superuser; only for tests marked `superuser`, which are counted."""
    assert _why_superuser, "a test that is a superuser itself says why: @pytest.mark.superuser('...')"
    return _url(dsn, SUPERUSER)


@contextmanager
def reason_to_be_superuser(reason: str | None) -> Iterator[None]:
    """While one test runs: what its marker `superuser` says; None where it has none."""
    _why_superuser[:] = [reason] if reason else []
    yield
    _why_superuser.clear()


def _url(dsn: str, role: str, database: str | None = None) -> str:
    """Return the URL of a database for one of the two roles, whichever form and role `dsn` has."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    words = (role, _passwords[parts["port"]], database or parts["dbname"])
    user, password, name = (quote(word, safe="") for word in words)
    return f"postgresql://{user}:{password}@{parts['host']}:{parts['port']}/{name}"
