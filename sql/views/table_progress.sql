-- rowferry.table_progress
--   One row a migration, queue and table: batches by status, entries by outcome. `label` is the `table.key` of the
--   plan's [[entries]]. `entries` = `waiting` + the seven outcomes of finished work; what an unfinished batch has
--   missed or failed so far counts as waiting. One scan of the queue: up to 1 s where it holds a million batches.
create or replace view rowferry.table_progress as
with counted as (
    select
        q.migration_id,
        q.queue_name,
        q.payload ->> 'entries' as label,
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
    group by q.migration_id, q.queue_name, q.payload ->> 'entries'
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
    c.entries - c.migrated - c.kept - c.changed - c.vanished - c.missing - c.conflict - c.failed as waiting,
    c.migrated,
    c.kept,
    c.changed,
    c.vanished,
    c.missing,
    c.conflict,
    c.failed,
    c.bytes,
    c.started_at,
    c.finished_at
from counted as c
inner join rowferry.migration as m on c.migration_id = m.id;
