-- 0006_due_by_queue: the index of the claim begins with the migration and the queue.

-- What waits in a paused migration, or in a queue that a worker does not serve, is then never looked at: with the old
-- index every claim walked past all of it.
drop index rowferry.batch_queue_due_idx;
create index batch_queue_due_idx on rowferry.batch_queue (migration_id, queue_name, run_after, id)
where status = 'INIT';
