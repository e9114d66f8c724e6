-- To operate: to read what failed, to put batches back in the queue, and to pause a migration.
grant select on rowferry.entry_failure, rowferry.batch_attempt, rowferry.worker to {role};
grant update (status) on rowferry.batch_queue to {role};
grant update (paused_at) on rowferry.migration to {role};
grant execute on function rowferry.requeue, rowferry.pause, rowferry.resume to {role};
