-- Rows that others have locked are still INIT here: an empty claim is not the end of the work.
select exists (
    select from rowferry.batch_queue
    where status = 'INIT' and queue_name = any(%(queues)s)
) as work_left
