-- For Grafana and for the exporter: to see the views, which read the tables with their owner's rights, and no table.
grant usage on schema rowferry to {role};
grant select on
    rowferry.progress, rowferry.table_progress, rowferry.throughput, rowferry.error_reasons, rowferry.live_workers,
    rowferry.claimed_batches, rowferry.migration_state, rowferry.worker_hosts, rowferry.finished_batches,
    rowferry.recent_attempts
to {role};
