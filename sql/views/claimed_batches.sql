-- The batches that live workers have claimed: one row an open attempt of a worker with a recent heartbeat.
-- A batch whose worker was killed belongs to the worker of its last attempt: a claim is exclusive, so earlier
-- attempts are over. `in_hand`: the entries that it has settled in it so far (rowferry.in_hand).
create or replace view rowferry.claimed_batches as
select
    q.id as batch_id,
    m.name as migration,
    q.queue_name,
    q.payload,
    q.entry_count,
    a.id as attempt_id,
    a.number as attempt,
    a.started_at,
    now() - a.started_at as claimed_for,
    w.id as worker_id,
    w.host,
    w.pid,
    least(coalesce((w.in_hand ->> a.id::text)::integer, 0), (rowferry.count_batch(q, 1)).waiting)::integer as in_hand
from rowferry.batch_attempt as a
inner join rowferry.live_workers as w on a.worker_id = w.id
inner join rowferry.batch_queue as q on a.batch_id = q.id
inner join rowferry.migration as m on q.migration_id = m.id
where
    a.finished_at is null
    and q.status = 'INIT'
    and not exists (select from rowferry.batch_attempt as l where l.batch_id = a.batch_id and l.id > a.id);
