-- What the exporter turns into metrics.

-- name: exporter_queues
-- One row a migration and queue that has batches, or a row in rowferry.queue; those with work first. `total`: how many
-- there are without the limit.
select
    s.*,
    s.paused_at is not null as paused,
    coalesce(extract(epoch from now() - s.due_since), 0)::double precision as due_seconds,
    extract(epoch from now() + s.time_left)::double precision as ends_at,
    count(*) over () as total
from rowferry.queue_status as s
order by s.is_done, s.migration_id desc, s.position
limit %(limit)s;

-- name: exporter_migrations
-- The state of each migration, and when it ends: with the last of its queues. The newest first.
select
    s.*,
    s.paused_at is not null as paused,
    s.state = 'paused' and s.paused_by_worker as is_paused_by_worker,
    s.state = 'done' as is_done,
    extract(epoch from s.since)::double precision as since,
    extract(epoch from s.ends_at)::double precision as ends_at,
    extract(epoch from now() - s.still_since)::double precision as still_seconds
from rowferry.migration_state as s
order by s.state = 'done', s.migration_id desc
limit %(limit)s;

-- name: exporter_transactions
-- The oldest transactions that keep VACUUM from its work; `seconds` is null where PostgreSQL hides it.
select * from rowferry.oldest_transactions;

-- name: exporter_hosts
-- The workers of each host.
select * from rowferry.worker_hosts;
