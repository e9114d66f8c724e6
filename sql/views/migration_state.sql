-- rowferry.migration_state
--   One row a migration: since when it is paused, and since when its oldest due batch has been due (null: none is;
--   a batch in hand counts as due). Reads the index of waiting batches, in the worst case to its end.
create or replace view rowferry.migration_state as
select
    m.id as migration_id,
    m.name as migration,
    m.created_at,
    m.passes,
    m.paused_at,
    o.batch_id as oldest_due_batch_id,
    o.due_since
from rowferry.migration as m
left join lateral (
    select
        q.id as batch_id,
        q.run_after as due_since
    from rowferry.batch_queue as q
    where q.status = 'INIT' and q.migration_id = m.id and q.run_after <= now()
    order by q.run_after, q.id
    limit 1
) as o on true;
