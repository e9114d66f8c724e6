-- To operate: to read what failed, and to put batches back in the queue.
grant select on rowferry.entry_failure, rowferry.batch_attempt, rowferry.worker to {role};
grant update (status) on rowferry.batch_queue to {role};
grant execute on function rowferry.requeue to {role};
