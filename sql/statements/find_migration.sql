select
    id,
    paused_at
from rowferry.migration
where name = %(name)s
