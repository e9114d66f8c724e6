select
    s.migration,
    s.batches_init as value
from rowferry.migration_state as s
where s.state = 'no_workers'
