select
    count(*) filter (where verdict = 'DONE') as "DONE",
    count(*) filter (where verdict = 'RETRY') as "RETRY",
    count(*) filter (where verdict = 'ERROR') as "ERROR",
    count(*) filter (where verdict in ('RELEASED', 'LOST')) as "released",
    count(*) filter (where verdict is null) as "running or crashed"
from rowferry.recent_attempts
where
    migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
    and $__timeFilter(started_at)
having count(*) > 0
