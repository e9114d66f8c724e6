-- One row a live worker and batch in its hand; a worker that holds nothing has one row without a batch.
select
    w.id,
    w.host,
    w.pid,
    h.batch_id,
    h.migration,
    h.held_for
from rowferry.live_workers as w
left join rowferry.claimed_batches as h on w.id = h.worker_id
order by w.host, w.pid, w.id, h.started_at
