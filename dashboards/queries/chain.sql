select
    queue_name as "queue",
    case when is_slowest and state = 'running' then 'slowest' else state end as "state",
    entries_left as "entries waiting",
    batches_left as "batches waiting",
    claimed,
    max_in_hand as "at most",
    rate_1m as "entries/s",
    extract(epoch from now() - due_since)::double precision as "oldest due",
    extract(epoch from time_left)::double precision as "time left"
from rowferry.queue_status
where migration = ${migration:sqlstring}
order by position
