import psycopg
import pytest
from psycopg import sql

from rowferry.database import connect
from rowferry.schema import initialise

KEY = "image/zoë-😀.png"


@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII"])
def test_a_key_is_the_same_text_whatever_the_encoding_of_the_database(
    database: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"encoded_{encoding.lower()}"
    identifier = sql.Identifier(name)
    with psycopg.connect(database, autocommit=True) as admin:
        create = "create database {} encoding {} template template0 locale 'C'"
        admin.execute(sql.SQL(create).format(identifier, sql.Literal(encoding)))
        monkeypatch.setenv("DATABASE_URL", psycopg.conninfo.make_conninfo(database, dbname=name))
        try:
            with connect("test", autocommit=True) as connection:
                initialise(connection)
                row = connection.execute("select %s as key, octet_length(%s) as bytes", (KEY, KEY)).fetchone()
                assert row == {"key": KEY, "bytes": len(KEY.encode())}
        finally:
            admin.execute(sql.SQL("drop database {}").format(identifier))


def test_a_clients_encoding_set_for_other_programs_changes_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with connect("test") as connection:
        assert connection.execute("select %s as key", (KEY,)).fetchone() == {"key": KEY}
