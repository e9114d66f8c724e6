-- rowferry.progress
--   One row a migration and queue: batches by status, entries by outcome, the rate of the last minute, the time left.
--   `entries` = `waiting` + the seven outcomes of finished work; `rate` is in entries a second, and `pace` is the same
--   for the last ten minutes; `time_left` goes by the pace, null while nothing moves. `in_hand` and `reached`: see
--   rowferry.table_progress, which it sums; `done_share`: see rowferry.share_done; then it joins `rowferry.throughput` and `rowferry.pace`.
create or replace view rowferry.progress as
with summed as (
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
        min(t.started_at) as started_at,
        max(t.finished_at) as finished_at,
        sum(t.in_hand)::bigint as in_hand,
        sum(t.reached)::bigint as reached
    from rowferry.table_progress as t
    group by t.migration_id, t.migration, t.queue_name
)

select
    s.*,
    coalesce(t.rate, 0) as rate,
    coalesce(p.pace, 0) as pace,
    case when p.pace > 0 then make_interval(secs => (s.waiting - s.reached) / p.pace) end as time_left,
    rowferry.share_done(s.entries, s.waiting, s.reached, s.missing + s.conflict + s.failed) as done_share
from summed as s
left join rowferry.throughput as t on s.migration_id = t.migration_id and s.queue_name = t.queue_name
left join rowferry.pace as p on s.migration_id = p.migration_id and s.queue_name = p.queue_name;
