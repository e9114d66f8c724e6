select
    h.host,
    h.lost as value
from rowferry.worker_hosts as h
where
    h.lost > 0
    and exists (select from rowferry.migration_state as s where s.state in ('running', 'waiting', 'no_workers'))
    and (
        h.lost > 2
        or (select sum(o.lost) from rowferry.worker_hosts as o) > (
            select count(*)
            from rowferry.live_workers as w
            where w.started_at > now() - interval '1 hour'
        )
    )
