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
from rowferry.finished_batches
where
    $__timeFilter(finished_at)
    and migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
    and duration is not null
order by duration desc
limit 20
