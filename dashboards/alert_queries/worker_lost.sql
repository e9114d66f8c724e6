select
    h.host,
    h.lost as value
from rowferry.worker_hosts as h
where
    (h.unreplaced > 0 or h.lost > 2)
    and exists (
        select from rowferry.migration_state as s
        where s.state in ('running', 'stalled', 'waiting', 'no_workers')
    )
