select
    id,
    name,
    paused_at,
    pause_reason,
    clock_timestamp() as moment
from rowferry.migration
where name = %(migration)s
