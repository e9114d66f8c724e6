select
    queue_name as "queue",
    batches_init as "INIT",
    batches_done as "DONE",
    batches_error as "ERROR"
from rowferry.queue_status
where migration = ${migration:sqlstring} and queue_name in (${queue:sqlstring})
order by position
