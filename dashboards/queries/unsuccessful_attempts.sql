select
    started_at as "started",
    batch_id as "batch",
    queue_name as "queue",
    attempt,
    coalesce(verdict, 'none yet') as "verdict",
    host,
    extract(epoch from coalesce(finished_at, now()) - started_at)::double precision as "duration",
    error
from rowferry.recent_attempts
where
    migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
    and $__timeFilter(started_at)
    and verdict is distinct from 'DONE'
order by started_at desc
limit 50
