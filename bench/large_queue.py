"""A large queue to measure on: millions of batches and attempts, made by INSERT … SELECT, logged and indexed."""

from pathlib import Path

import psycopg

SIDES = ("legacy", "production")

ENTRY_TABLES = """
create table public.table_0 (id bigint primary key, path text not null);
create table public.table_1 (id bigint primary key, path text not null);
create table public.table_2 (id bigint primary key, path text not null);
create table public.table_3 (id bigint primary key, path text not null);
insert into public.table_0 values (0, 'image/0')
"""
WORKERS = """
insert into rowferry.worker (
    id, host, pid, version, batches, in_flight_limit, queues, started_at, last_seen_at, stopped_at
)
select
    format('host-%s:%s:x', i % 8, i), 'host-' || i % 8, i, '1', 4, 256, '{migrate}', now() - interval '7 days',
    now() - interval '6 days' + i * interval '10 minutes', now() - interval '6 days' + i * interval '10 minutes'
from generate_series(1, 800) as i
"""
DONE = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, attempts, run_after, created_at, started_at, finished_at,
    worker_id, migrated, kept, changed, bytes
)
select
    1, 'migrate', jsonb_build_object(
        'entries', format('public.table_%%s.path', i %% 4), 'first', (i * 100)::text, 'last', (i * 100 + 99)::text,
        'on_conflict', 'fail'
    ),
    100, 'DONE', 1 + (i %% 100 < 75)::integer, began, began,
    began + i * step - interval '2 seconds', began + i * step,
    format('host-%%s:%%s:x', i %% 8, i %% 800), 97, 2, 1, 2000000
from generate_series(1, %(done)s) as i
cross join (select now() - interval '7 days' as began, interval '7 days' / %(done)s as step) as t
"""
ERROR = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, attempts, run_after, created_at, started_at, finished_at,
    worker_id, error, migrated, missing, conflict, failed
)
select
    1, 'migrate', jsonb_build_object(
        'entries', format('public.table_%%s.path', i %% 4), 'first', (-i * 100)::text, 'last', (-i * 100 + 99)::text,
        'on_conflict', 'fail'
    ),
    100, 'ERROR', 5, began, began, began + i * step - interval '2 seconds', began + i * step,
    format('host-%%s:%%s:x', i %% 8, i %% 800), '20 missing (NoSuchKey), 10 conflict, 20 failed', 50, 20, 10, 20
from generate_series(1, %(error)s) as i
cross join (select now() - interval '7 days' as began, interval '7 days' / %(error)s as step) as t
"""
FAILURES = """
insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt, failed_at)
select
    q.id, ((q.payload ->> 'first')::bigint + f.i)::text, format('image/%s/%s.png', q.id, f.i), r.outcome, r.reason,
    'The specified key does not exist.', 5, q.finished_at
from rowferry.batch_queue as q
cross join generate_series(0, 49) as f (i)
inner join (
    values
    (0, 19, 'missing', 'NoSuchKey'), (20, 24, 'conflict', 'different object'),
    (25, 29, 'conflict', 'ProductionIsNewer'), (30, 39, 'failed', 'AccessDenied'),
    (40, 44, 'failed', 'InvalidObjectState'), (45, 49, 'failed', 'KeyTooLongError')
) as r (first, last, outcome, reason)
    on f.i between r.first and r.last
where q.status = 'ERROR'
union all
select
    q.id, ((q.payload ->> 'first')::bigint + 99)::text, format('image/%s/99.png', q.id), 'changed', 'changed',
    'the application has rewritten the key', 1, q.finished_at
from rowferry.batch_queue as q
where q.status = 'DONE' and q.id % 50 = 0
"""
WAITING = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, run_after)
select
    1, 'migrate', jsonb_build_object(
        'entries', format('public.table_%%s.path', i %% 4), 'first', (1000000000 + i * 100)::text,
        'last', (1000000000 + i * 100 + 99)::text, 'on_conflict', 'fail'
    ), 100, now() - interval '1 hour'
from generate_series(1, %(waiting)s) as i
"""
ATTEMPTS = """
insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id, started_at, finished_at, verdict)
select
    q.id, 0, n, q.worker_id, q.started_at - (2 - n) * interval '5 minutes',
    q.finished_at - (2 - n) * interval '5 minutes',
    case when n < 2 then 'RETRY' else 'DONE' end
from rowferry.batch_queue as q cross join generate_series(1, 2) as n
where q.status = 'DONE'
union all
select
    q.id, 0, n, q.worker_id, q.started_at - (5 - n) * interval '5 minutes',
    q.finished_at - (5 - n) * interval '5 minutes',
    case when n < 5 then 'RETRY' else 'ERROR' end
from rowferry.batch_queue as q cross join generate_series(1, 5) as n
where q.status = 'ERROR'
union all
select
    -i, 0, 1, 'host-1:1:x', now() - interval '8 days', now() - interval '8 days', 'DONE'
from generate_series(1, %(orphans)s) as i
order by 6
"""


def make_tables(dsn: str) -> None:
    """Make the tables of the plan, with one row, so that there is something to enqueue."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in ENTRY_TABLES.split(";"):
            connection.execute(statement.encode())


def fill_queue(dsn: str, done: int) -> None:
    """Fill the queue of the first migration: so many batches DONE, a fifth of it INIT, a 250th in ERROR.

    Half of the entries of each in ERROR have failed, for six reasons: of five million batches, a million entries. There
    are 2.4 attempts for each that is DONE; some are of batches that are gone.
    """
    sizes = {"done": done, "error": done // 250, "waiting": done // 5, "orphans": done * 2 // 5 - done // 50}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (WORKERS, DONE, ERROR, FAILURES, WAITING, ATTEMPTS):
            connection.execute(statement.encode(), sizes if "%(" in statement else None)
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")


def write_plan(folder: Path) -> Path:
    """Write the plan of the queue into a folder and return its path."""
    sides = "".join(f'[{side}]\nbucket = "{side}"\nendpoint_url = "http://127.0.0.1:1"\n' for side in SIDES)
    entries = "".join(
        f'[[entries]]\ntable = "public.table_{number}"\nid = "id"\nkey = "path"\nfrom = "image/"\nto = "avatar/"\n'
        for number in range(4)
    )
    path = folder / "rowferry.toml"
    path.write_text(f'[migration]\nname = "large"\n{sides}{entries}', encoding="utf-8")
    return path
