select
    queue_name as "queue",
    state,
    waiting - in_hand as "entries waiting",
    batches_init - least(claimed, batches_init) as "batches waiting",
    claimed,
    max_in_hand as "at most",
    case when pending_batches > 0 then rate_1m else 0 end as "entries/s",
    extract(epoch from now() - due_since)::double precision as "oldest due",
    extract(epoch from time_left)::double precision as "time left"
from rowferry.queue_status
where migration = ${migration:sqlstring}
order by position
