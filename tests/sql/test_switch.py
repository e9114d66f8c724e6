"""When an application may have been switched: the first moment counts, whoever learns of it, until it goes back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from rowferry.db.statements import statement

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
COLUMNS = """
select moment_at, switched_at, was_switched_at, switched_back_at is not null as is_back from rowferry.migration
"""

Session = psycopg.Connection[DictRow]


@pytest.fixture
def migration(database: str) -> Session:
    """A session on a database with one migration, whose id is 1."""
    connection = Session.connect(database, autocommit=True, row_factory=dict_row)
    connection.execute("insert into rowferry.migration (name, plan) values ('a', '{}')")
    return connection


def read(connection: Session) -> tuple[Any, ...]:
    (row,) = connection.execute(COLUMNS.encode()).fetchall()
    return tuple(row.values())


def note(connection: Session, moment: datetime) -> None:
    connection.execute("select rowferry.note_switch(1, %s, false)", (moment,))


def confirm(connection: Session, moment: datetime | None) -> None:
    connection.execute("select rowferry.note_switch(1, %s, true)", (moment,))


def test_the_first_moment_counts(migration: Session) -> None:
    """A second cutover comes to a later one, and a person confirms that."""
    with migration:
        note(migration, NOON)
        note(migration, LATER)
        assert read(migration) == (NOON, None, None, False)
        confirm(migration, LATER)
        assert read(migration) == (NOON, NOON, None, False)
        confirm(migration, LATER)
        assert read(migration) == (NOON, NOON, None, False)


def test_a_confirmation_alone_is_the_moment(migration: Session) -> None:
    with migration:
        confirm(migration, LATER)
        assert read(migration) == (LATER, LATER, None, False)


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_going_back_keeps_since_when_it_was_away(is_confirmed: bool, migration: Session) -> None:
    """Most go back before they confirm anything."""
    with migration:
        note(migration, NOON)
        if is_confirmed:
            confirm(migration, LATER)
        confirm(migration, None)
        assert read(migration) == (None, None, NOON, True)
        note(migration, LATER)
        confirm(migration, None)
        assert read(migration) == (None, None, NOON, True)


def test_a_batch_learns_of_the_moment_whatever_its_payload_says(migration: Session) -> None:
    with migration:
        parameters: dict[str, Any] = {"migration_id": 1, "switched_at": None}
        (row,) = migration.execute(statement("read_timeline"), parameters).fetchall()
        assert (row["switched"], row["was_switched"], row["switched_back"]) == (None, None, None)
        now = datetime.now(UTC)
        note(migration, now - timedelta(seconds=100))
        for later in (None, now):
            (row,) = migration.execute(statement("read_timeline"), {**parameters, "switched_at": later}).fetchall()
            assert 99 < row["switched"] < 1000
