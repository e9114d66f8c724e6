-- Whether batches of these entries wait in the queue, or are in ERROR.
select exists (
    select from rowferry.batch_queue as q
    where
        q.migration_id = %(migration_id)s
        and q.queue_name = %(queue)s
        and q.status in ('INIT', 'ERROR')
        and q.payload ->> 'entries' = %(label)s
) as has_waiting
