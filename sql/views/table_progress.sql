-- rowferry.table_progress
--   One row a migration, queue and table: batches by status, entries by outcome. `label` is the `table.key` of the
--   plan's [[entries]]. `entries` = `waiting` + the seven outcomes of finished work; missing and failed entries of
--   an unfinished batch count as waiting. `started_at` and `finished_at`: when the first attempt began and the last
--   batch ended, even if they were pruned or requeued since. `in_hand`: those of the waiting entries that workers have
--   settled inside their batches, their rows and verdicts being still to be written; `reached`: the same, with what dead
--   workers had settled (rowferry.in_hand). `done_share`: see rowferry.share_done; `entries_left`: the waiting entries
--   that no worker has settled; `unsettled`: those that are missing, conflict or failed. Reads the tally, some hundred
--   rows, not the queue.
create or replace view rowferry.table_progress as
with counted as (
    select
        t.migration_id,
        t.queue_name,
        t.label,
        sum(t.batches)::bigint as batches,
        sum(t.batches_init)::bigint as batches_init,
        sum(t.batches_done)::bigint as batches_done,
        sum(t.batches_error)::bigint as batches_error,
        sum(t.entries)::bigint as entries,
        sum(t.migrated)::bigint as migrated,
        sum(t.kept)::bigint as kept,
        sum(t.changed)::bigint as changed,
        sum(t.deleted)::bigint as deleted,
        sum(t.missing)::bigint as missing,
        sum(t.conflict)::bigint as conflict,
        sum(t.failed)::bigint as failed,
        sum(t.bytes)::bigint as bytes,
        min(t.started_at) as started_at,
        max(t.finished_at) as finished_at
    from rowferry.batch_tally as t
    group by t.migration_id, t.queue_name, t.label
    having sum(t.batches) > 0
)

select
    c.migration_id,
    m.name as migration,
    c.queue_name,
    c.label,
    c.batches,
    c.batches_init,
    c.batches_done,
    c.batches_error,
    c.entries,
    d.waiting,
    c.migrated,
    c.kept,
    c.changed,
    c.deleted,
    c.missing,
    c.conflict,
    c.failed,
    c.bytes,
    c.started_at,
    c.finished_at,
    coalesce(h.entries, 0) as in_hand,
    coalesce(h.reached, 0) as reached,
    rowferry.share_done(
        c.entries,
        d.waiting,
        coalesce(h.reached, 0),
        d.unsettled
    ) as done_share,
    d.waiting - coalesce(h.entries, 0) as entries_left,
    d.unsettled
from counted as c
cross join lateral (
    select
        c.entries - c.migrated - c.kept - c.changed - c.deleted - c.missing - c.conflict - c.failed as waiting,
        c.missing + c.conflict + c.failed as unsettled
) as d
inner join rowferry.migration as m on c.migration_id = m.id
left join rowferry.in_hand as h
    on c.migration_id = h.migration_id and c.queue_name = h.queue_name and c.label is not distinct from h.label;
