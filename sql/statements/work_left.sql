-- Whether a worker that stops when its queues are empty has anything to wait for. A batch that others have locked is
-- still INIT here. What is paused, passed over or due much later is not waited for.
select exists (
    select
    from rowferry.migration as m
    cross join unnest(%(queues)s::text []) as u (queue_name)
    cross join lateral (
        select q.run_after
        from rowferry.batch_queue as q
        where q.status = 'INIT' and q.migration_id = m.id and q.queue_name = u.queue_name
        order by q.run_after, q.id
        limit 1
    ) as oldest
    where
        m.paused_at is null
        and (%(migrations)s::text [] is null or m.name = any(%(migrations)s::text []))
        and m.id <> all(%(passed_over)s::bigint [])
        and oldest.run_after <= statement_timestamp() + %(horizon)s
) as work_left
