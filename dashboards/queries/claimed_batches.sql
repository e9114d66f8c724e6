select
    batch_id as "batch",
    queue_name as "queue",
    extract(epoch from claimed_for)::double precision as "claimed for",
    entry_count as "entries",
    in_hand as "done",
    attempt,
    host,
    pid,
    payload ->> 'entries' as "table and key",
    payload ->> 'first' as "first id",
    payload ->> 'last' as "last id"
from rowferry.claimed_batches
where
    migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
order by started_at
