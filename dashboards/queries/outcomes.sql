select
    queue_name as "queue",
    migrated,
    kept,
    changed,
    deleted,
    missing,
    conflict,
    failed
from rowferry.progress
where migration = ${migration:sqlstring} and queue_name in (${queue:sqlstring})
order by queue_name
