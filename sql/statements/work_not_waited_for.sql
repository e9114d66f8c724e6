-- What is INIT though `work_left` says that nothing is: one row a migration, the oldest first. `due_at` is null where
-- an operator has set every run_after to infinity.
select
    m.id as migration_id,
    m.name as migration,
    m.paused_at,
    m.pause_reason,
    count(*) as batches,
    nullif(min(q.run_after), 'infinity') as due_at
from rowferry.migration as m
inner join rowferry.batch_queue as q on m.id = q.migration_id
where
    q.status = 'INIT'
    and q.queue_name = any(%(queues)s::text [])
    and (%(migrations)s::text [] is null or m.name = any(%(migrations)s::text []))
group by m.id
order by m.id
