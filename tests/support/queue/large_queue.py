"""A crowded queue: as many batches DONE as INIT, and as many attempts and entries."""

from typing import Any

import psycopg
from psycopg import sql

CROWD = """
insert into rowferry.migration (name, plan) values ('crowded', '{}'), ('other', '{}');
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, migrated, attempts, run_after, started_at, finished_at,
    worker_id
)
select 1, 'migrate', '{}', 1, 'DONE', 1, 1, moment, moment, moment + i * interval '1 millisecond', 'h:1:x'
from generate_series(1, %(many)s) as i, (select now() - interval '2 days' as moment) as m;
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count) select 1, 'migrate', '{}', 1
from generate_series(1, %(many)s);
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, finished_at, verdict)
select i, 0, 1, 'h:1:x', now(), 'DONE' from generate_series(1, %(many)s) as i;
create table public.entries (id bigint primary key, path text not null);
insert into public.entries
select i, case when i %% 2 = 0 then 'image/' else 'avatar/' end || i || '/me.png'
from generate_series(1, greatest(%(many)s, 100000)) as i
"""
INDEXES = """
select indexname as name, indexdef as definition from pg_indexes
where schemaname = 'rowferry' and tablename = 'batch_queue' and indexname not like '%_pkey'
"""


def fill(connection: psycopg.Connection[Any], many: int) -> None:
    """Fill the tables with so many of each, and at least 100,000 entries: of fewer, PostgreSQL had better read all.

    They are filled before their indexes, and without asking for each batch whether its migration is there.
    The connection is an administrator's; the tables of the queue stay their owner's.
    """
    connection.execute("set session_replication_role = replica")
    indexes = connection.execute(INDEXES).fetchall()
    for name, _ in indexes:
        connection.execute(sql.SQL("drop index rowferry.{}").format(sql.Identifier(name)))
    for statement in CROWD.split(";"):
        connection.execute(statement.encode(), {"many": many})
    for _, definition in indexes:
        connection.execute(definition.encode())
    connection.execute("vacuum analyze")
