-- What insert_batches would put in the queue.
select
    count(*) as batches,
    coalesce(sum(c.entry_count), 0)::bigint as entries
from ({chunks}) as c
