select
    migration,
    queue_name,
    batches_init,
    batches_done,
    batches_error,
    entries,
    waiting,
    migrated,
    kept,
    changed,
    deleted,
    missing,
    conflict,
    failed,
    rate,
    extract(epoch from now() + time_left)::double precision as ends_at
from rowferry.progress
