"""A session bounds its waits; test_pgbouncer: through it as well, test_deadlines: on our side."""

import json
from contextlib import closing

import pytest
from psycopg.conninfo import make_conninfo

from rowferry.db.connection import Connection, connect
from rowferry.db.timeouts import IDLE_TIMEOUT, LOCK_TIMEOUT, LOST_AFTER
from support.entries.migration import Migration
from support.postgres.relay import telling_version

pytestmark = pytest.mark.versions

SETTINGS = "select name, setting from pg_settings where name = any(%s)"


def test_documents_are_read_as_the_server_has_them(database: str) -> None:
    """Two of them are beyond msgspec, which reads all others faster."""
    documents = {
        "jsonb": ['{"items": [{"id": "1", "n": 1.5, "none": null}]}', '"ä"', "12345678901234567890"],
        "json": ["1e400", r'"\ud83d"', '{"a": 1, "a": 2}'],
    }
    with closing(connect("test", autocommit=True)) as connection:
        for kind, texts in documents.items():
            for text in texts:
                row = connection.execute(f"select %s::{kind} as document".encode(), (text,)).fetchone()
                assert row is not None
                assert row["document"] == json.loads(text)


def read_settings(connection: Connection, *names: str) -> dict[str, str]:
    return {row["name"]: row["setting"] for row in connection.execute(SETTINGS, (list(names),))}


def test_every_session_bounds_its_waits(any_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "1.5")
    with closing(connect("test", autocommit=True)) as connection:
        names = ("lock_timeout", "tcp_keepalives_idle", "tcp_user_timeout", "client_connection_check_interval")
        assert read_settings(connection, *names) == {
            "lock_timeout": "1500",
            "tcp_keepalives_idle": "10",
            "tcp_user_timeout": "15000",
            "client_connection_check_interval": "1000",
        }


@pytest.mark.parametrize(
    ("path", "left"),
    [('"$user", public', "public"), ('public, "$user"', "public"), ('a,"$user",b', "a,b"), ('"$user"', ""), ("a", "a")],
)
def test_a_role_of_our_name_finds_the_tables_of_the_application(
    path: str, left: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests' role is called rowferry, as our schema is, in which `events` is a view."""
    escaped = path.replace(" ", r"\ ")
    monkeypatch.setenv("DATABASE_URL", make_conninfo(database, options=f"-c search_path={escaped}"))
    with closing(connect("test")) as connection:
        query = "select current_user::text as name, current_setting('search_path') as path"
        found = connection.execute(query).fetchone()
    assert found == {"name": "rowferry", "path": left}


@pytest.mark.parametrize("command", ["check", "status", "worker --until-empty", "init"])
def test_a_server_that_is_too_old_gets_one_sentence(command: str, versitygw_migration: Migration) -> None:
    versitygw_migration.write_plan()
    with telling_version(versitygw_migration.dsn, 13) as dsn:
        done = versitygw_migration.run(*command.split(), DATABASE_URL=dsn)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "rowferry: This is PostgreSQL 13, and rowferry needs 14 or newer: upgrade the server, or name another one."
    )


def test_a_user_may_set_the_bounds(any_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOST_AFTER, "30")
    monkeypatch.setenv(IDLE_TIMEOUT, "90")
    with closing(connect("test", autocommit=True)) as connection:
        names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
        assert read_settings(connection, *names, "idle_in_transaction_session_timeout") == {
            "tcp_keepalives_idle": "20",
            "tcp_keepalives_interval": "10",
            "tcp_keepalives_count": "3",
            "tcp_user_timeout": "30000",
            "idle_in_transaction_session_timeout": "90000",
        }


def test_a_workers_statement_is_slow_before_it_is_lost(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_TIMEOUT, "1.5")
    with closing(connect("test", bounded=True)) as bounded, closing(connect("test")) as free:
        for connection, milliseconds in ((bounded, "19500"), (free, "0")):
            assert read_settings(connection, "statement_timeout") == {"statement_timeout": milliseconds}
