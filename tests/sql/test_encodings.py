from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest
from psycopg import sql

from rowferry.batch import Entry, EntryResult, Judgement, Outcome, Verdict
from rowferry.db.connection import Connection, connect
from rowferry.db.schema import initialise
from rowferry_worker.attempts import begin_attempt
from rowferry_worker.batch.verdict import write_failure, write_verdict
from rowferry_worker.ledger import Ledger
from support.postgres.ordinary import drop_database, make_own_database
from support.queue.held_batches import claim
from support.queue.rows import ADD_BATCHES

KEY = "image/zoë-😀.png"


@contextmanager
def encoded(database: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """Yield a connection to a prepared database of this encoding."""
    name = f"encoded_{encoding.lower()}_{uuid4().hex}"
    options = sql.SQL("encoding {} template template0 locale 'C'").format(sql.Literal(encoding))
    try:
        monkeypatch.setenv("DATABASE_URL", make_own_database(database, name, options))
        with connect("test", autocommit=True) as connection:
            initialise(connection)
            yield connection
    finally:
        drop_database(database, name)


@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII"])
def test_a_key_is_the_same_text_whatever_the_encoding_of_the_database(
    database: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with encoded(database, encoding, monkeypatch) as connection:
        row = connection.execute("select %s as key, octet_length(%s) as bytes", (KEY, KEY)).fetchone()
        assert row == {"key": KEY, "bytes": len(KEY.encode())}


@pytest.mark.parametrize(
    ("encoding", "stored"),
    [("LATIN1", "zoë don?t ??"), ("WIN1252", "zoë don’t ??"), ("UTF8", "zoë don’t ??"), ("EUC_JP", "zoë don’t ??")],
)
def test_what_a_database_cannot_hold_of_a_message_is_replaced(
    database: str, encoding: str, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "zoë don’t \0\udcff"
    with encoded(database, encoding, monkeypatch) as connection:
        connection.execute("insert into rowferry.migration (name, plan) values ('m', '{}')")
        connection.execute(ADD_BATCHES, (1, 1))
        with connection.transaction():
            batch = claim(connection)
            with closing(Ledger("test")) as ledger:
                attempt = begin_attempt(ledger, batch, "test")
            lost = EntryResult(Entry("1", "k"), Outcome.FAILED, reason=message, error=message)
            with connection.transaction(force_rollback=True):
                write_verdict(connection, batch, attempt, Judgement(Verdict.ERROR, error=message), [lost])
                assert connection.execute("select error from rowferry.batch_queue").fetchall() == [{"error": stored}]
                assert connection.execute("select error from rowferry.entry_failure").fetchall() == [{"error": stored}]
            write_failure(connection, batch, attempt, Judgement(Verdict.ERROR, error=message))
            assert connection.execute("select error from rowferry.batch_attempt").fetchall() == [{"error": stored}]


def test_a_clients_encoding_set_for_other_programs_changes_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with connect("test") as connection:
        assert connection.execute("select %s as key", (KEY,)).fetchone() == {"key": KEY}
