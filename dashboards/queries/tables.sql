select
    label as "table and key",
    queue_name as "queue",
    floor(1000 * done_share) / 10 as "done",
    entries,
    entries_left as "waiting",
    unsettled as "failed",
    bytes
from rowferry.table_progress
where migration = ${migration:sqlstring} and queue_name = any(array[${queue:sqlstring}]::text[])
order by "waiting" desc
