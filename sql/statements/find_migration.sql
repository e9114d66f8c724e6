select
    id,
    paused_at,
    pause_reason
from rowferry.migration
where name = %(name)s
