-- What is in ERROR now.
select
    count(*) as batches,
    coalesce(sum(entry_count), 0)::bigint as entries,
    coalesce(sum(missing + conflict + failed), 0)::bigint as failed
from rowferry.batch_queue
where status = 'ERROR'
