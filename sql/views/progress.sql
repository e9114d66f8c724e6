-- rowferry.progress
--   One row a migration and queue: batches by status, entries by outcome, the rate of the last minute, the time left.
--   `entries` = `waiting` + the seven outcomes of finished work; `rate` is in entries a second; `time_left` is null
--   while nothing moves.
create or replace view rowferry.progress as
with counted as (
    select
        q.migration_id,
        q.queue_name,
        count(*) as batches,
        count(*) filter (where q.status = 'INIT') as batches_init,
        count(*) filter (where q.status = 'DONE') as batches_done,
        count(*) filter (where q.status = 'ERROR') as batches_error,
        sum(q.entry_count)::bigint as entries,
        sum(q.migrated)::bigint as migrated,
        sum(q.kept)::bigint as kept,
        sum(q.changed)::bigint as changed,
        sum(q.vanished)::bigint as vanished,
        coalesce(sum(q.missing) filter (where q.status <> 'INIT'), 0)::bigint as missing,
        coalesce(sum(q.conflict) filter (where q.status <> 'INIT'), 0)::bigint as conflict,
        coalesce(sum(q.failed) filter (where q.status <> 'INIT'), 0)::bigint as failed,
        sum(q.bytes)::bigint as bytes,
        min(q.started_at) as started_at,
        max(q.finished_at) as finished_at
    from rowferry.batch_queue as q
    group by q.migration_id, q.queue_name
),

recent as (
    select
        q.migration_id,
        q.queue_name,
        sum(q.entry_count) as entries,
        min(q.started_at) as since
    from rowferry.batch_queue as q
    where q.finished_at > now() - interval '1 minute'
    group by q.migration_id, q.queue_name
),

paced as (
    select
        c.*,
        c.entries - c.migrated - c.kept - c.changed - c.vanished - c.missing - c.conflict - c.failed as waiting,
        coalesce(
            r.entries / extract(epoch from greatest(
                least(now() - r.since, interval '1 minute'), interval '1 second'
            )), 0
        )::double precision as rate
    from counted as c
    left join recent as r on c.migration_id = r.migration_id and c.queue_name = r.queue_name
)

select
    p.migration_id,
    m.name as migration,
    p.queue_name,
    p.batches,
    p.batches_init,
    p.batches_done,
    p.batches_error,
    p.entries,
    p.waiting,
    p.migrated,
    p.kept,
    p.changed,
    p.vanished,
    p.missing,
    p.conflict,
    p.failed,
    p.bytes,
    p.rate,
    case when p.rate > 0 then make_interval(secs => p.waiting / p.rate) end as time_left,
    p.started_at,
    p.finished_at
from paced as p
inner join rowferry.migration as m on p.migration_id = m.id;
