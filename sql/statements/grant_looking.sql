-- What every role needs: to see the version, the plans, the queue, and the views over them.
grant usage on schema rowferry to {role};
grant select on rowferry.schema_migration, rowferry.migration, rowferry.batch_queue to {role};
grant select on
    rowferry.progress, rowferry.table_progress, rowferry.throughput, rowferry.error_reasons, rowferry.live_workers,
    rowferry.claimed_batches, rowferry.migration_state, rowferry.worker_hosts, rowferry.finished_batches,
    rowferry.recent_attempts
to {role};
