"""Lines of waiting batches: migrations and their queues, without a table or an S3 server behind them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from rowferry.batch import Batch
from rowferry.db.connection import Connection, connect
from rowferry_worker.batch.claim import claim_batch
from rowferry_worker.waiting_lines import WaitingLines

Line = tuple[str, str]
"""The name of a migration, and of a queue."""

ADD = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count)
select m.id, %(queue)s, '{}', 1 from rowferry.migration as m, generate_series(1, %(count)s)
where m.name = %(migration)s
"""
CLASS = 1919907686
"""The first integer of the advisory locks that are places: see rowferry.take_place."""


class Lines:
    """What an operator does to lines, in a session of its own in autocommit."""

    def __init__(self, dsn: str) -> None:
        # Without JIT: it compiles the views of a chain for a second a query, and changes nothing in what they return.
        self.session = psycopg.Connection[DictRow].connect(
            dsn, autocommit=True, row_factory=dict_row, options="-c jit=off"
        )

    def close(self) -> None:
        self.session.close()

    def register(self, migration: str, queues: Mapping[str, Any] | None = None) -> int:
        """Store a migration without a plan; `queues` is what the plan says of them."""
        stored = "select migration_id from rowferry.register_migration(%s, '{}', %s)"
        (row,) = self.session.execute(stored, (migration, Jsonb(queues or {}))).fetchall()
        return row["migration_id"]

    def add(self, line: Line, count: int) -> None:
        """Put batches in a line."""
        self.session.execute(ADD, {"migration": line[0], "queue": line[1], "count": count})

    def steer(self, line: Line, assignments: str) -> None:
        """Set columns of a queue that has a row."""
        statement = (
            f"update rowferry.queue set {assignments} where name = %s "
            "and migration_id = (select m.id from rowferry.migration as m where m.name = %s)"
        )
        cursor = self.session.execute(statement.encode(), (line[1], line[0]))
        assert cursor.rowcount == 1

    def rows(self, migration: str) -> dict[str, DictRow]:
        """Return the rows of rowferry.queue, by name."""
        found = self.session.execute(
            "select k.* from rowferry.queue as k inner join rowferry.migration as m on k.migration_id = m.id "
            "where m.name = %s order by k.name",
            (migration,),
        )
        return {row["name"]: row for row in found}

    def names(self) -> dict[int, str]:
        """Return the names of the migrations by id."""
        return {row["id"]: row["name"] for row in self.session.execute("select id, name from rowferry.migration")}

    def count_places(self) -> Counter[int]:
        """Return how many places of each queue's id are taken: what an auditor sees in pg_locks."""
        found = self.session.execute(
            "select objid::bigint / 1024 as queue, count(*) as taken from pg_locks "
            "where locktype = 'advisory' and classid = %s and objsubid = 2 and granted "
            "and database = (select d.oid from pg_database as d where d.datname = current_database()) group by 1",
            (CLASS,),
        )
        return Counter({row["queue"]: row["taken"] for row in found})


def finish(connection: Connection, batch: Batch) -> None:
    """Make a claimed batch DONE, and commit."""
    connection.execute("update rowferry.batch_queue set status = 'DONE', migrated = 1 where id = %s", (batch.id,))
    connection.commit()


def claim_and_finish(lines: Lines, queues: list[str], count: int) -> list[Line]:
    """Claim and finish so many batches in one session; return the line of each, in order."""
    names, found, known = lines.names(), list[Line](), WaitingLines()
    with closing(connect("worker")) as connection:
        for _ in range(count):
            batch = claim_batch(connection, queues, lines=known)
            assert batch is not None
            found.append((names[batch.migration_id], batch.queue_name))
            finish(connection, batch)
    return found


@contextmanager
def sessions(count: int) -> Iterator[list[Connection]]:
    """Yield the connections of workers."""
    with ExitStack() as until:
        yield [until.enter_context(closing(connect(f"worker {number}"))) for number in range(count)]
