-- `rowferry enqueue --items`.

-- name: last_waiting_items
-- The newest batch of items that waits in a queue or is in ERROR; null: none.
select max(q.id) as id
from rowferry.batch_queue as q
where
    q.migration_id = %(migration_id)s
    and q.queue_name = %(queue)s
    and q.status in ('INIT', 'ERROR')
    and q.payload ? 'items';

-- name: list_waiting_items
-- Those of some ids that are items of batches which wait in a queue or are in ERROR, up to a batch.
select distinct i.value ->> 'id' as id
from rowferry.batch_queue as q
cross join jsonb_array_elements(q.payload -> 'items') as i
where
    q.migration_id = %(migration_id)s
    and q.queue_name = %(queue)s
    and q.status in ('INIT', 'ERROR')
    and q.payload ? 'items'
    and q.id <= %(last)s
    and i.value ->> 'id' = any(%(ids)s::text []);
