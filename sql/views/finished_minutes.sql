-- rowferry.finished_minutes
--   What was finished in each minute: one row a minute, migration and queue that finished a batch in it; `minute` is its
--   beginning. A batch that was requeued counts in each minute in which it was finished, if that was summed up before;
--   pruned batches stay. Reads rowferry.finished_minute, and the batches that finished after its last row: some minutes
--   of them while workers live.
create or replace view rowferry.finished_minutes as
select
    m.name as migration,
    s.queue_name,
    s.minute,
    s.batches,
    s.entries,
    s.migrated,
    s.kept,
    s.changed,
    s.deleted,
    s.missing,
    s.conflict,
    s.failed,
    s.bytes
from rowferry.finished_minute as s
inner join rowferry.migration as m on s.migration_id = m.id
union all
select
    m.name as migration,
    q.queue_name,
    date_bin('1 minute', q.finished_at, 'epoch') as minute,
    count(*) as batches,
    sum(q.entry_count) as entries,
    sum(q.migrated) as migrated,
    sum(q.kept) as kept,
    sum(q.changed) as changed,
    sum(q.deleted) as deleted,
    sum(q.missing) as missing,
    sum(q.conflict) as conflict,
    sum(q.failed) as failed,
    sum(q.bytes)::bigint as bytes
from rowferry.batch_queue as q
inner join rowferry.migration as m on q.migration_id = m.id
where
    q.finished_at >= coalesce(
        (select max(s.minute) + interval '1 minute' from rowferry.finished_minute as s), '-infinity'
    )
    -- Always true. With a bound on both sides the planner expects a 200th of the batches instead of a third, for which
    -- it would compile the query: seconds of CPU.
    and q.finished_at < 'infinity'
group by m.name, q.queue_name, date_bin('1 minute', q.finished_at, 'epoch');
