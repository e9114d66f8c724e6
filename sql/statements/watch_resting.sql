-- The batches that rest until their next attempt, the soonest of them, and what most of them stopped for.
select
    count(*) as batches,
    min(q.run_after) as next_at,
    mode() within group (order by q.error) as error
from rowferry.batch_queue as q
where q.status = 'INIT' and q.run_after > clock_timestamp() and q.migration_id = %(id)s
