select
    id,
    name,
    paused_at,
    clock_timestamp() as moment
from rowferry.migration
where name = %(migration)s
