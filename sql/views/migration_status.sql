-- rowferry.migration_status
--   One row a migration: since when it is paused, why (null: by a person), and since when its oldest due batch has been
--   due (null: none is due; a claimed batch counts). Reads the beginning of the index of waiting batches, once a queue.
create or replace view rowferry.migration_status as
with queues as (
    select distinct
        t.migration_id,
        t.queue_name
    from rowferry.batch_tally as t
)

select
    m.id as migration_id,
    m.name as migration,
    m.created_at,
    m.passes,
    m.paused_at,
    o.batch_id as oldest_due_batch_id,
    o.due_since,
    m.pause_reason
from rowferry.migration as m
left join lateral (
    select
        q.id as batch_id,
        q.run_after as due_since
    from queues as u
    cross join lateral (
        select
            b.id,
            b.run_after
        from rowferry.batch_queue as b
        where b.status = 'INIT' and b.migration_id = m.id and b.queue_name = u.queue_name and b.run_after <= now()
        order by b.run_after, b.id
        limit 1
    ) as q
    where u.migration_id = m.id
    order by q.run_after, q.id
    limit 1
) as o on true;
