-- What the exporter turns into metrics.

-- name: exporter_transaction
-- The exporter only reads, and gives up rather than hold a queue up. Settings of its transaction, not of its session:
-- behind PgBouncer the session's next client could not write.
select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', '30s', true);

-- name: exporter_progress
-- Batches, entries and rate by migration and queue.
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
from rowferry.progress;

-- name: exporter_migrations
-- Which migrations are paused, and for how long their oldest batch has been due.
select
    migration,
    paused_at is not null as paused,
    coalesce(extract(epoch from now() - due_since), 0)::double precision as due_seconds
from rowferry.migration_status;

-- name: exporter_hosts
-- The workers of each host.
select
    host,
    live,
    lost,
    claimed_batches
from rowferry.worker_hosts;
