-- rowferry.progress
--   One row a migration and queue: batches by status, entries by outcome, the rate of the last minute, the time left.
--   `entries` = `waiting` + the seven outcomes of finished work; `rate_1m` is in entries a second, `rate_10m` is the same
--   for the last ten minutes; `time_left` goes by that, null while nothing moves. `in_hand` and `reached`: see
--   rowferry.table_progress, which it sums; `done_share`: see rowferry.share_done; then it joins `rowferry.rate_1m` and `rowferry.rate_10m`.
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
    coalesce(t.rate_1m, 0) as rate_1m,
    coalesce(p.rate_10m, 0) as rate_10m,
    case when p.rate_10m > 0 then make_interval(secs => (s.waiting - s.reached) / p.rate_10m) end as time_left,
    rowferry.share_done(s.entries, s.waiting, s.reached, s.missing + s.conflict + s.failed) as done_share
from summed as s
left join rowferry.rate_1m as t on s.migration_id = t.migration_id and s.queue_name = t.queue_name
left join rowferry.rate_10m as p on s.migration_id = p.migration_id and s.queue_name = p.queue_name;
