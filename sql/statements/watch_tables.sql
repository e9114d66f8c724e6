select
    label,
    queue_name,
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
from rowferry.table_progress
where migration_id = %(id)s
order by queue_name, label
