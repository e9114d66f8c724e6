-- rowferry.migration_status
--   One row a migration: since when it is paused, why (null: a person gave no reason), and since when its oldest due batch has been
--   due (null: none is due; a claimed batch counts). `is_done`: it had batches, and all batches of all its queues are
--   DONE. How it stands in one word, and the time left, are in rowferry.migration_state.
create or replace view rowferry.migration_status as
select
    m.id as migration_id,
    m.name as migration,
    m.created_at,
    m.passes,
    m.paused_at,
    q.oldest_due_batch_id,
    q.due_since,
    m.pause_reason,
    coalesce(q.is_done, false) as is_done
from rowferry.migration as m
left join (
    select
        s.migration_id,
        (array_agg(s.oldest_due_batch_id order by s.due_since, s.oldest_due_batch_id))[1] as oldest_due_batch_id,
        min(s.due_since) as due_since,
        bool_and(s.batches = s.batches_done) and bool_or(s.batches > 0) as is_done
    from rowferry.queue_status as s
    group by s.migration_id
) as q on m.id = q.migration_id;
