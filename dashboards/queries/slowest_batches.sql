-- Of the last 50,000 that finished in the time shown: an index gives these, whatever the queue holds.
with finished as (
    select *
    from rowferry.finished_batches
    where
        $__timeFilter(finished_at)
        and migration = ${migration:sqlstring}
        and queue_name = any(array[${queue:sqlstring}]::text[])
        and duration is not null
    order by finished_at desc
    limit 50000
)

select
    batch_id as "batch",
    queue_name as "queue",
    extract(epoch from duration)::double precision as "duration",
    entry_count as "entries",
    attempts,
    status,
    label as "table and key",
    first_id as "first id",
    last_id as "last id",
    host,
    finished_at as "finished"
from finished
order by duration desc
limit 20
