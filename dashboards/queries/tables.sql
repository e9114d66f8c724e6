select
    label as "table and key",
    queue_name as "queue",
    case when entries > 0 then 100.0 * (entries - waiting) / entries end as "done",
    entries,
    waiting,
    missing + conflict + failed as "failed",
    bytes
from rowferry.table_progress
where migration = ${migration:sqlstring} and queue_name = any(array[${queue:sqlstring}]::text[])
order by waiting desc
