select
    s.migration,
    s.waiting as value
from rowferry.migration_state as s
where
    s.state in ('running', 'waiting')
    and s.waiting > 0
    and not exists (select from rowferry.throughput as t where t.migration_id = s.migration_id)
