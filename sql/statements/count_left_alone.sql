-- How many wanted entries of a table no enqueue takes up, since batches in ERROR of the queue cover their ids; and in how
-- many batches. One range scan of the table a batch in ERROR.
select
    count(*) filter (where c.entries > 0) as batches,
    coalesce(sum(c.entries), 0)::bigint as entries
from (
    select
        (q.payload ->> 'first')::{id_type} as first_id,
        (q.payload ->> 'last')::{id_type} as last_id
    from rowferry.batch_queue as q
    where
        q.migration_id = %(migration_id)s
        and q.queue_name = %(queue)s
        and q.status = 'ERROR'
        and q.payload ->> 'entries' = %(label)s
) as r
cross join lateral (
    select count(*) as entries
    from {table} as e
    where e.{id} >= r.first_id and e.{id} <= r.last_id and {wanted} and {where}
) as c
