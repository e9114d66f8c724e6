-- To enqueue: to store the plan, and to add batches without a status, counts or times of their own.
grant execute on function rowferry.register_migration, rowferry.renew_batches, rowferry.record_pass to {role};
grant insert (migration_id, queue_name, payload, entry_count, max_attempts) on rowferry.batch_queue to {role};
