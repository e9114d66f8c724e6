-- The batches that are DONE or ERROR, one a row, with the duration and the host of the last attempt. Query it with a
-- condition on finished_at, which has an index.
create or replace view rowferry.finished_batches as
select
    q.id as batch_id,
    m.name as migration,
    q.queue_name,
    q.payload ->> 'entries' as label,
    q.payload ->> 'first' as first_id,
    q.payload ->> 'last' as last_id,
    q.status,
    q.entry_count,
    q.migrated,
    q.kept,
    q.changed,
    q.deleted,
    q.missing,
    q.conflict,
    q.failed,
    q.bytes,
    q.attempts,
    q.started_at,
    q.finished_at,
    q.finished_at - q.started_at as duration,
    q.worker_id,
    w.host,
    q.error
from rowferry.batch_queue as q
inner join rowferry.migration as m on q.migration_id = m.id
left join rowferry.worker as w on q.worker_id = w.id
where q.finished_at is not null;
