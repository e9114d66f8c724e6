"""A table of entries and the queue beside it, as a test fills them and looks at them; knows nothing of S3."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, LiteralString, Self, cast
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row

from rowferry.batch import Outcome
from rowferry.db.connection import Connection, connect
from rowferry.db.timeouts import has_spoken
from rowferry.plan import Plan
from rowferry.plan_file import parse_plan
from rowferry.queues import find_queue
from rowferry_enqueue.enqueue import Enqueued, EnqueueRequest, enqueue, preview

FROM, TO = "image/", "avatar/"
TABLE = "create table public.avatars (id {type} primary key, path text)"

Record = dict[str, Any]

READ_BY_SESSIONS = ("DATABASE_URL", "PG", "ROWFERRY_")
"""How the variables begin that a session depends on."""


def trusted(text: str) -> sql.SQL:
    """Return SQL that a test itself has composed."""
    return sql.SQL(cast("LiteralString", text))


def keyed(key: str, old: str = FROM, new: str = TO, **more: Any) -> dict[str, Any]:
    """Return what [[entries]] say of a column whose texts begin with `old` and are to begin with `new`."""
    return {"key": key, "from": old, "to": new, **more}


def is_idle(session: Connection) -> bool:
    """Return whether a session is still there, and in no transaction."""
    return session.info.transaction_status == TransactionStatus.IDLE and not has_spoken(session)


def make_request(batch_size: int = 100, queue: str = "migrate", **asked: Any) -> EnqueueRequest:
    """Return a request to a queue; what EnqueueRequest has no field for is one of the queue's own choices."""
    spec = find_queue(queue)
    own = {field.name: asked.pop(field.name) for field in fields(EnqueueRequest) if field.name in asked}
    return EnqueueRequest(spec, batch_size, choices=spec.choices(**asked), **own)


class EntryTable:
    """A table `avatars(id, path)` and a plan for it; DATABASE_URL must lead to its database."""

    def __init__(self, dsn: str, *, id_type: str = "bigint") -> None:
        """Make the table; `id_type` may end with a collation."""
        self.dsn = dsn
        self._connection: psycopg.Connection[Record] | None = None
        self._sessions: dict[str, tuple[Record, Connection]] = {}
        self.id_type = id_type.partition(" ")[0]
        self.plan: dict[str, Any] = {
            "migration": {"name": "avatars"},
            "legacy": {"bucket": "old"},
            "production": {"bucket": "new"},
            "entries": [{"table": "public.avatars", "id": "id", "key": "path", "from": FROM, "to": TO}],
        }
        self.make_table(id_type)

    def plan_entries(self, table: str, **fields: Any) -> None:
        """Let the plan name these entries alone, by `id` unless told otherwise."""
        self.plan["entries"] = [{"table": table, "id": "id", **fields}]

    def make_table(self, id_type: str) -> None:
        self.execute(sql.SQL(TABLE).format(type=trusted(id_type)))

    def insert(self, keys: Mapping[str, str | None]) -> Self:
        """Add rows, by their ids."""
        query = sql.SQL("insert into public.avatars select * from unnest(%s::text[]::{type}[], %s::text[])")
        self.execute(query.format(type=trusted(self.id_type)), (list(keys), list(keys.values())))
        return self

    def id_of(self, number: int) -> str:
        """Return an id that rises with `number`."""
        return str(UUID(int=number)) if self.id_type == "uuid" else str(number)

    def add_legacy(self, numbers: Iterable[int]) -> Self:
        """Add legacy rows with rising ids."""
        return self.insert({self.id_of(number): f"{FROM}u{number}/me.png" for number in numbers})

    def execute(self, query: str | sql.Composable, parameters: Sequence[object] | Record | None = None) -> list[Record]:
        """Run one statement on a connection of the test's own, and return its rows."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.Connection[DictRow].connect(self.dsn, autocommit=True, row_factory=dict_row)
        composed = trusted(query) if isinstance(query, str) else query
        cursor = self._connection.execute(composed.as_bytes(self._connection), parameters)
        return cursor.fetchall() if cursor.description is not None else []

    def add_trigger(self, body: str, on: str = "before update on public.avatars", *, kind: str = "") -> None:
        """Have a trigger do this, in PL/pgSQL, for each row; `kind`: `constraint`, or nothing."""
        self.execute(f"create function public.meddle() returns trigger language plpgsql as $$ begin {body} end $$")
        self.execute(f"create {kind} trigger meddle {on} for each row execute function public.meddle()")

    def close(self) -> None:
        """Close that connection, and the sessions."""
        if self._connection is not None:
            self._connection.close()
        for _, session in self._sessions.values():
            session.close()

    @contextmanager
    def session(self, purpose: str) -> Iterator[Connection]:
        """Yield a session in autocommit, the one of the block before where that can be: a new one knows no query yet.

        What the block sets in it must not outlast a transaction.
        """
        variables = {name: value for name, value in os.environ.items() if name.startswith(READ_BY_SESSIONS)}
        kept, session = self._sessions.pop(purpose, ({}, None))
        if session is not None and (kept != variables or not is_idle(session)):
            session.close()
            session = None
        session = session or connect(purpose, autocommit=True)
        try:
            yield session
        finally:
            if is_idle(session) and purpose not in self._sessions:
                self._sessions[purpose] = variables, session
            else:
                session.close()

    def read_plan(self) -> Plan:
        return parse_plan(self.plan, "of the test")

    def enqueue(self, batch_size: int = 100, **request: Any) -> list[Enqueued]:
        """Enqueue in this process, as `rowferry enqueue` does."""
        with self.session("enqueue") as connection:
            return enqueue(connection, self.read_plan(), make_request(batch_size, **request))

    def preview(self, batch_size: int = 100, **request: Any) -> list[Enqueued]:
        """Enqueue as `rowferry enqueue --dry-run` does."""
        with self.session("enqueue") as connection:
            return preview(connection, self.read_plan(), make_request(batch_size, **request))

    def make_due(self) -> None:
        """End the rest that a batch takes before its next attempt."""
        self.execute("update rowferry.batch_queue set run_after = now() where status = 'INIT'")

    def rows(self) -> dict[str, str | None]:
        return {row["id"]: row["path"] for row in self.execute("select id::text, path from public.avatars order by 1")}

    def batches(self) -> list[Record]:
        return self.execute("select * from rowferry.batch_queue order by id")

    def batch(self) -> Record:
        """Return the only batch."""
        (batch,) = self.batches()
        return batch

    def ranges(self) -> list[tuple[str, str]]:
        """Return the first and the last id of each batch."""
        return [(batch["payload"]["first"], batch["payload"]["last"]) for batch in self.batches()]

    def attempts(self) -> list[Record]:
        return self.execute("select * from rowferry.batch_attempt order by id")

    def verdicts(self) -> list[str | None]:
        return [attempt["verdict"] for attempt in self.attempts()]

    def failures(self) -> list[Record]:
        return self.execute("select * from rowferry.entry_failure order by batch_id, entry_id")

    def counts(self, queue: str = "%") -> dict[str, int]:
        """Return the entries of all batches, or of those of a queue, by outcome, without the zeros."""
        sums = sql.SQL(", ").join(map(sql.SQL("sum({0})::int as {0}").format, map(sql.Identifier, Outcome)))
        query = sql.SQL("select {} from rowferry.batch_queue where queue_name like %s").format(sums)
        (row,) = self.execute(query, [queue])
        return {outcome: count for outcome, count in row.items() if count}

    def statuses(self) -> set[str]:
        return {batch["status"] for batch in self.batches()}

    def check_balance(self) -> None:
        """Hold every finished batch against its counts."""
        for batch in self.batches():
            if batch["status"] != "INIT":
                unsettled = batch["missing"] + batch["conflict"] + batch["failed"]
                assert batch["entry_count"] == sum(batch[outcome] for outcome in Outcome), batch
                assert (batch["status"] == "ERROR") == bool(unsettled), batch
