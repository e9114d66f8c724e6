-- What is INIT though `work_left` says that nothing is: one row a migration, the oldest first.
select
    m.id as migration_id,
    m.name as migration,
    m.paused_at,
    m.pause_reason,
    count(*) as batches,
    min(q.run_after) as due_at
from rowferry.migration as m
inner join rowferry.batch_queue as q on m.id = q.migration_id
where
    q.status = 'INIT'
    and q.queue_name = any(%(queues)s::text [])
    and (%(migrations)s::text [] is null or m.name = any(%(migrations)s::text []))
group by m.id
order by m.id
