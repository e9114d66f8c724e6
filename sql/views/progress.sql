-- rowferry.progress
--   One row a migration and queue: batches by status, entries by outcome, the rate of the last minute, the time left.
--   `entries` = `waiting` + the seven outcomes of finished work; `rate` is in entries a second; `time_left` is null
--   while nothing moves. Sums `rowferry.table_progress` and joins `rowferry.throughput`.
create or replace view rowferry.progress as
select
    t.migration_id,
    t.migration,
    t.queue_name,
    sum(t.batches)::bigint as batches,
    sum(t.batches_init)::bigint as batches_init,
    sum(t.batches_done)::bigint as batches_done,
    sum(t.batches_error)::bigint as batches_error,
    sum(t.entries)::bigint as entries,
    sum(t.waiting)::bigint as waiting,
    sum(t.migrated)::bigint as migrated,
    sum(t.kept)::bigint as kept,
    sum(t.changed)::bigint as changed,
    sum(t.deleted)::bigint as deleted,
    sum(t.missing)::bigint as missing,
    sum(t.conflict)::bigint as conflict,
    sum(t.failed)::bigint as failed,
    sum(t.bytes)::bigint as bytes,
    coalesce(p.rate, 0) as rate,
    case when p.rate > 0 then make_interval(secs => sum(t.waiting) / p.rate) end as time_left,
    min(t.started_at) as started_at,
    max(t.finished_at) as finished_at
from rowferry.table_progress as t
left join rowferry.throughput as p on t.migration_id = p.migration_id and t.queue_name = p.queue_name
group by t.migration_id, t.migration, t.queue_name, p.rate;
