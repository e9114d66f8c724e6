"""A migration of 95 minutes in the queue's tables, as workers on three hosts leave it: a pause, crashes, failures."""

from typing import Any

import psycopg
from psycopg.types.json import Jsonb

PLAN: dict[str, Any] = {
    "migration": {"name": "avatars"},
    "legacy": {"bucket": "old-images", "endpoint_url": "https://s3.old.example"},
    "production": {"bucket": "new-images", "endpoint_url": "https://s3.new.example", "max_requests_per_second": 800.0},
    "entries": [
        {"table": "public.avatars", "id": "id", "key": "path", "from": "image/", "to": "avatar/"},
        {"table": "public.covers", "id": "id", "key": "path", "from": "cover/", "to": "covers/"},
    ],
    "queue": {"migrate": {"then": ["verify"]}},
}

FILL = """
insert into rowferry.migration (name, plan, created_at) values ('avatars', %(plan)s, '2026-11-21 19:58:00+00');
insert into rowferry.event (migration_id, at, kind, text) select id, t.* from rowferry.migration, (values
    (timestamptz '2026-11-21 20:32:40+00', 'paused', 'paused by a person'),
    (timestamptz '2026-11-21 20:42:40+00', 'resumed', 'resumed')
) as t;
insert into rowferry.queue (migration_id, name, next, max_claimed)
select id, 'migrate', array['verify'], 64 from rowferry.migration;
insert into rowferry.worker
    (id, host, pid, version, batches, in_flight_limit, queues, started_at, last_seen_at, stopped_at)
select 'worker-' || n || ':' || p || ':a', 'worker-' || n, p, '0.1.0', 0, 100, '{migrate,verify}', began, began, began
from generate_series(1, 3) as n, generate_series(100, 101) as p,
    (select timestamptz '2026-11-21 20:00:00+00' as began) as m;
-- Each batch ends 1.5 s after the one before it, on average; the migration was paused for ten minutes.
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, attempts, started_at, finished_at, worker_id,
    migrated, kept, missing, failed, bytes
)
select
    1, queue, jsonb_build_object('entries', label, 'first', i, 'last', i + 499), 500,
    case when bad + lost > 0 then 'ERROR' else 'DONE' end,
    case when i %% 97 = 0 then 2 when bad > 0 then 5 else 1 end,
    ended - interval '9 seconds', ended, worker,
    case queue when 'migrate' then 480 - bad - lost else 0 end,
    case queue when 'migrate' then 20 else 500 end,
    lost, bad, 480 * 65536
from (
    select
        i, queue, place,
        case when i %% 3 = 0 then 'public.covers.path' else 'public.avatars.path' end as label,
        'worker-' || 1 + i %% 3 || ':' || 100 + i %% 2 || ':a' as worker,
        case when queue = 'migrate' and i %% 311 = 0 then 2 else 0 end as lost,
        case when queue = 'migrate' and share between 0.55 and 0.57 and i %% 29 = 0 then 7 else 0 end as bad,
        timestamptz '2026-11-21 20:00:20+00' + place * interval '40 seconds'
        + interval '85 minutes' * (share + 0.05 * sin(share * 9))
        + case when share > 0.4 then interval '10 minutes' else interval '0' end as ended
    from generate_series(1, %(batches)s) as i,
        (values ('migrate', 0), ('verify', 1)) as q (queue, place),
        lateral (select i / %(batches)s::float8 as share) as s
) as b
order by ended;
insert into rowferry.batch_attempt (
    batch_id, requeues, number, worker_id, started_at, finished_at, verdict, error, outcomes
)
select
    q.id, 0, n, q.worker_id, q.started_at - (q.attempts - n) * interval '20 seconds',
    case when n < q.attempts and q.id %% 5 = 0 then null
        else q.finished_at - (q.attempts - n) * interval '20 seconds' end,
    case when n = q.attempts then q.status when q.id %% 5 = 0 then null else 'RETRY' end,
    case when n < q.attempts and q.id %% 5 <> 0 then 'SlowDown: Please reduce your request rate.' end,
    case when n = q.attempts then
        jsonb_build_object('migrated', q.migrated, 'kept', q.kept, 'missing', q.missing, 'failed', q.failed)
    end
from rowferry.batch_queue as q, generate_series(1, q.attempts) as n;
insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt, failed_at)
select q.id, q.id * 500 + n, 'image/u' || q.id * 500 + n || '/me.png', 'missing', 'NoSuchKey',
    'NoSuchKey: The specified key does not exist.', 1, q.finished_at
from rowferry.batch_queue as q, generate_series(1, q.missing) as n
union all
select q.id, q.id * 500 + 100 + n, 'image/u' || q.id * 500 + 100 + n || '/me.png', 'failed', 'AccessDenied',
    'AccessDenied: The server refuses to read this object, by a policy of the bucket.', 5, q.finished_at
from rowferry.batch_queue as q, generate_series(1, q.failed) as n;
"""


def fill_queue(dsn: str, batches: int = 3600) -> None:
    """Fill an initialised database with so many batches of `migrate`, and as many of `verify`."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in FILL.split(";\n"):
            parameters = {
                name: value
                for name, value in (("plan", Jsonb(PLAN)), ("batches", batches))
                if f"%({name})s" in statement
            }
            if statement.strip():
                connection.execute(statement.encode(), parameters if parameters or "%%" in statement else None)
