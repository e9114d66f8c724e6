select
    batches,
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
    bytes
from rowferry.progress
where migration = %(migration)s and queue_name = %(queue)s
