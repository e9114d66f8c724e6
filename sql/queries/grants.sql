-- What a role needs, as `rowferry init --grants` prints and applies it: the comments are printed, too.

-- name: grant_views
-- Every role: see the views, which read the tables with their owner's rights. Grafana and the exporter need no more.
grant usage on schema rowferry to {role};
grant select on
    rowferry.progress, rowferry.table_progress, rowferry.rates, rowferry.error_reasons, rowferry.live_workers,
    rowferry.claimed_batches, rowferry.worker_hosts, rowferry.finished_batches,
    rowferry.recent_attempts, rowferry.open_uploads, rowferry.queue_status, rowferry.migration_state, rowferry.events,
    rowferry.oldest_transactions, rowferry.in_hand, rowferry.open_attempts, rowferry.outages
to {role};
grant execute on function
    rowferry.measure_transactions, rowferry.share_done, rowferry.count_batch, rowferry.add_counts, rowferry.sum_counts
to {role};

-- name: grant_tables
-- Every role but Grafana's: see the version, the plans, and the queues with their settings.
grant select on
    rowferry.schema_migration, rowferry.migration, rowferry.queue, rowferry.batch_queue, rowferry.pass,
    rowferry.coverage, rowferry.server_fact
to {role};

-- name: grant_enqueuer
-- Enqueue: store the plan, and add batches without a status, counts or times of their own.
grant execute on function
    rowferry.register_migration, rowferry.renew_batches, rowferry.record_pass, rowferry.begin_pass,
    rowferry.note_switch, rowferry.enqueue_items, rowferry.replace_items,
    rowferry.choose_on_conflict, rowferry.record_coverage, rowferry.record_fact
to {role};
grant insert (migration_id, queue_name, payload, entry_count, max_attempts) on rowferry.batch_queue to {role};

-- name: grant_worker
-- Work: claim batches and write their verdicts, through these functions only.
grant execute on function
    rowferry.find_oldest, rowferry.claim_batch, rowferry.find_lines, rowferry.begin_attempt, rowferry.end_attempt,
    rowferry.lose_attempts, rowferry.finish_batch, rowferry.fail_batch, rowferry.split_batch, rowferry.add_ranges,
    rowferry.heartbeat, rowferry.update_worker, rowferry.take_row_turn, rowferry.judge_fault,
    rowferry.pause_migration, rowferry.take_upload, rowferry.record_upload, rowferry.record_parts, rowferry.end_upload,
    rowferry.add_parts, rowferry.list_uploads, rowferry.record_copy, rowferry.note_write, rowferry.note_copy,
    rowferry.find_copy, rowferry.note_folder, rowferry.record_fact,
    rowferry.share_connections
to {role};

-- name: grant_operator
-- Operate: read failures, put batches back in the queue; pause, prioritise and limit migrations and their queues.
grant select on rowferry.entry_failure, rowferry.batch_attempt, rowferry.worker to {role};
grant update (status) on rowferry.batch_queue to {role};
grant update (paused_at, pause_reason) on rowferry.migration to {role};
grant insert (migration_id, name, priority, weight, max_claimed, paused_at, pause_reason, next) on rowferry.queue
to {role};
grant update (priority, weight, max_claimed, paused_at, pause_reason, next) on rowferry.queue to {role};
grant execute on function
    rowferry.requeue, rowferry.choose_on_conflict, rowferry.set_pause
to {role};

-- name: limit_grafana
-- Whoever reaches Grafana can send any SQL as this role: write nothing, end after 15 s, and compile no view. A session
-- can take these back; what it may read and write is what is granted. Needs CREATEROLE, and from PostgreSQL 16 on the
-- ADMIN option of this role.
alter role {role} set default_transaction_read_only = on;
alter role {role} set statement_timeout = '15s';
alter role {role} set idle_in_transaction_session_timeout = '60s';
alter role {role} set jit = off;

-- name: grant_reading_columns
-- Read the entries of {table}: the columns that the plan names, no other.
grant usage on schema {schema} to {role};
grant select ({columns}) on {table} to {role};

-- name: grant_reading_table
-- Read the entries of {table}: the whole table, since SQL of the plan may name any column.
grant usage on schema {schema} to {role};
grant select on {table} to {role};

-- name: grant_queue
-- The queue {queue}: {right} these columns of {table}.
grant usage on schema {schema} to {role};
grant {right} ({columns}) on {table} to {role};

-- name: grant_rewriting_keys
-- Rewrite these columns of {table}, and nothing else there.
grant update ({written}) on {table} to {role};
