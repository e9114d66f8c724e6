select
    s.migration,
    s.batches_init as value
from rowferry.migration_state as s
where
    (s.state = 'running' or (s.state = 'waiting' and s.next_at < now() + interval '10 minutes'))
    and not exists (select from rowferry.throughput as t where t.migration_id = s.migration_id)
