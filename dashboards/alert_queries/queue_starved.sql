select
    s.migration,
    s.queue_name as queue,
    extract(epoch from now() - s.due_since)::double precision as value
from rowferry.queue_status as s
where
    s.due_since < now() - interval '15 minutes'
    and s.claimed = 0
    and s.rate_1m = 0
    and s.paused_at is null
    and s.priority >= (select max(o.priority) from rowferry.queue_status as o where o.claimed > 0)
