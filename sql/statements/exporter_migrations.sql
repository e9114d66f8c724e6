select
    migration,
    paused_at is not null as paused,
    coalesce(extract(epoch from now() - due_since), 0)::double precision as due_seconds
from rowferry.migration_state
