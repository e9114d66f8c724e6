select
    s.migration,
    greatest(s.batches_init, 1) as value,
    s.pause_reason as reason
from rowferry.migration_state as s
where s.state = 'paused' and s.paused_by_worker
