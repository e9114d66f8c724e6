select
    s.migration,
    extract(epoch from now() - s.paused_at)::double precision as value
from rowferry.migration_state as s
where s.state = 'paused' and not s.paused_by_worker and s.paused_at < now() - interval '1 day'
