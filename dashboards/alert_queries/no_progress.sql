select
    s.migration,
    s.batches_init as value
from rowferry.migration_state as s
where
    (
        s.cause = 'server_away'
        or (
            (s.state in ('running', 'stalled') or (s.state = 'waiting' and s.next_at < now() + interval '10 minutes'))
            and coalesce(s.still_since < now() - interval '2 minutes', true)
        )
    )
    and not exists (select from rowferry.queue_status as t where t.migration_id = s.migration_id and t.rate_1m > 0)
