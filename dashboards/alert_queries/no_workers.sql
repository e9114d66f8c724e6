select
    s.migration,
    s.waiting as value
from rowferry.migration_state as s
where s.state = 'no_workers'
