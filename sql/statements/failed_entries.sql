-- The entries that keep batches in ERROR, those that failed last first.
select
    m.name as migration,
    q.queue_name,
    f.batch_id,
    q.payload ->> 'entries' as entries,
    f.entry_id,
    f.key,
    f.outcome,
    f.reason,
    f.error,
    f.attempt,
    f.failed_at,
    count(*) over () as total
from rowferry.entry_failure as f
inner join rowferry.batch_queue as q on f.batch_id = q.id
inner join rowferry.migration as m on q.migration_id = m.id
where
    q.status = 'ERROR'
    and f.outcome in ('missing', 'conflict', 'failed')
    and (%(migration)s::text is null or m.name = %(migration)s)
order by f.failed_at desc, f.batch_id, f.entry_id
limit %(limit)s
